package main

import (
	"fmt"
	"strings"
)

// integerRows are the most rows of A of a kernel that multiplies integers.
const integerRows = 6

// lowBytes is a shuffle of the low byte of each dword to all four.
const lowBytes = `
DATA lowBytes<>+0(SB)/8, $0x0404040400000000
DATA lowBytes<>+8(SB)/8, $0x0c0c0c0c08080808
GLOBL lowBytes<>(SB), RODATA, $16
`

// The fields that choose among kernels of integers.
var (
	byUnpacking = [2]string{"t+0(FP)", "unpacking_kernel"}
	bySumming   = [2]string{"t+0(FP)", "summing_kernel"}
)

// integerAVX512 writes the kernels for products of integers.
func integerAVX512() string {
	s := newSource()
	s.WriteString(lowBytes)
	roundAVX512(s)
	var unpack, sum []string
	for _, bits := range codeBits {
		unpack = append(unpack, unpacking{"AVX512", 'Z', 64}.write(s, bits))
	}
	for _, groups := range []int{1, 2} {
		for rows := range integerRows {
			sum = append(sum, sumAVX512(s, rows+1, groups))
		}
	}
	s.chooseAMD64("unpackAVX512", byUnpacking, unpack)
	s.chooseAMD64("sumAVX512", bySumming, sum)
	return s.String()
}

// roundAVX512 writes the kernel that rounds numbers of a row of A.
//
// Registers: AX the argument; SI the numbers and DI their records; BX the records left; R8 the bias, negative; R9
// whether groups are of 16; R10 and R11 the sums of the two groups.
func roundAVX512(s *source) {
	s.WriteString("\n// func roundAVX512(t *rounding)\nTEXT ·roundAVX512(SB), NOSPLIT, $0-8\n")
	roundBegin(s)
	s.op("MOVL $0x7fffffff, CX")
	s.op("VPBROADCASTD CX, Z31")
	roundConstants(s, 30, 29)
	s.label("record")
	s.op("VMOVUPS (SI), Z0")
	s.op("VMOVUPS 64(SI), Z1")
	s.op("VPXORD Z8, Z8, Z8")
	s.op("VMOVDQU32 Z8, (DI)")
	s.op("VPANDD Z31, Z0, Z2")
	s.op("VPANDD Z31, Z1, Z3")
	s.op("VPMAXUD Z3, Z2, Z2")
	s.op("VEXTRACTI64X4 $1, Z2, Y3")
	s.op("VPMAXUD Y3, Y2, Y2")
	s.op("VEXTRACTI128 $1, Y2, X3")
	s.op("VPMAXUD X3, X2, X2")
	s.op("VPSHUFD $0x4e, X2, X3")
	s.op("VPMAXUD X3, X2, X2")
	s.op("VPSHUFD $0xb1, X2, X3")
	s.op("VPMAXUD X3, X2, X2")
	s.op("VMOVD X2, CX")
	s.op("CMPL CX, $0x7f800000")
	s.op("JCC infinite")
	s.op("VDIVSS X30, X2, X2") // a
	s.op("VMOVD X2, CX")
	s.op("CMPL CX, $0x00800000") // the least normal number
	s.op("JCS next")
	s.op("VMOVSS X2, record_a(DI)")
	s.op("VDIVSS X2, X29, X3")
	s.op("VBROADCASTSS X3, Z3")
	for v := range 2 {
		s.op("VMULPS Z3, Z%d, Z%d", v, v)
		s.op("VCVTPS2DQ Z%d, Z%d", v, v)
		s.op("VPMOVDB Z%d, %d(DI)", v, 16*v)
		s.op("VEXTRACTI64X4 $1, Z%d, Y4", v)
		s.op("VPADDD Y4, Y%d, Y%d", v, v)
		s.op("VEXTRACTI128 $1, Y%d, X4", v)
		s.op("VPADDD X4, X%d, X%d", v, v)
		s.op("VPSHUFD $0x4e, X%d, X4", v)
		s.op("VPADDD X4, X%d, X%d", v, v)
		s.op("VPSHUFD $0xb1, X%d, X4", v)
		s.op("VPADDD X4, X%d, X%d", v, v)
		s.op("VMOVD X%d, R%d", v, 10+v)
	}
	roundEnd(s, 2)
}

func roundBegin(s *source) {
	s.op("MOVQ t+0(FP), AX")
	s.op("MOVQ rounding_src(AX), SI")
	s.op("MOVQ rounding_dst(AX), DI")
	s.op("MOVQ rounding_count(AX), BX")
	s.op("MOVQ rounding_bias(AX), R8")
	s.op("NEGQ R8")
	s.op("MOVQ rounding_half(AX), R9")
}

// roundConstants loads 127 and 1.
func roundConstants(s *source, most, one int) {
	s.op("MOVL $0x42fe0000, CX")
	s.op("VMOVD CX, X%d", most)
	s.op("MOVL $0x3f800000, CX")
	s.op("VMOVD CX, X%d", one)
}

// roundEnd writes what the sums are for, with a in a register, and the end of the loop.
func roundEnd(s *source, a int) {
	s.op("TESTQ R9, R9")
	s.op("JNE second")
	s.op("ADDL R11, R10")
	s.op("JMP first")
	s.label("second")
	sum := func(group, register int) {
		s.op("VCVTSI2SSL R%d, X8, X0", register)
		s.op("VMULSS X%d, X0, X0", a)
		s.op("VMOVSS X0, record_sum+%d(DI)", 4*group)
		s.op("IMULL R8, R%d", register)
		s.op("MOVL R%d, record_start+%d(DI)", register, 4*group)
	}
	sum(1, 11)
	s.label("first")
	sum(0, 10)
	s.label("next")
	s.op("ADDQ $128, SI")
	s.op("ADDQ $64, DI")
	s.op("DECQ BX")
	s.op("JNZ record")
	packEnd(s)
	s.label("infinite")
	s.op("MOVL $0x7fc00000, CX")
	s.op("MOVL CX, record_a(DI)")
	s.op("MOVL CX, record_sum(DI)")
	s.op("MOVL CX, record_sum+4(DI)")
	s.op("JMP next")
}

// unpacking writes kernels that store the unsigned codes of some tiles, with vectors of so many bytes.
//
// Registers: AX the argument; SI the codes, DX the fifth bits and DI the destination; BX and R13 the records and tiles
// left. Vectors: 15 the mask of nibbles, 14 the table or the bias; 13 to 10 are for fifth bits: 16, the masks of bytes,
// and the low bytes.
type unpacking struct {
	name     string
	register byte
	bytes    int
}

func (u unpacking) op(s *source, format string, arguments ...any) {
	s.op("%s", strings.ReplaceAll(fmt.Sprintf(format, arguments...), "V#", string(u.register)))
}

func (u unpacking) write(s *source, bits int) string {
	name := fmt.Sprintf("unpack%d%s", bits, u.name)
	s.begin(name, 0)
	s.op("MOVQ unpacking_codes(AX), SI")
	s.op("MOVQ unpacking_dst(AX), DI")
	s.op("MOVQ unpacking_tiles(AX), R13")
	constant := func(value string, register int) {
		s.op("MOVL %s, CX", value)
		s.op("VMOVD CX, X%d", register)
		u.op(s, "VPBROADCASTD X%d, V#%d", register, register)
	}
	line := func(from string, register int) {
		if u.register == 'Z' {
			s.op("VBROADCASTI32X4 %s, Z%d", from, register)
		} else {
			s.op("VBROADCASTI128 %s, Y%d", from, register)
		}
	}
	constant("$0x0f0f0f0f", 15)
	switch bits {
	case 4:
		s.op("MOVQ unpacking_table(AX), CX")
		line("(CX)", 14)
	case 5:
		s.op("MOVQ unpacking_fifths(AX), DX")
		constant("$0x10101010", 13)
		constant("$0x08040201", 12)
		constant("$0x80402010", 11)
		line("lowBytes<>(SB)", 10)
	case 8:
		s.op("MOVQ unpacking_bias(AX), CX")
		s.op("VMOVD CX, X14")
		u.op(s, "VPBROADCASTB X14, V#14")
	}
	s.label("tile")
	s.op("MOVQ unpacking_count(AX), BX")
	s.label("record")
	if bits == 8 {
		u.eight(s)
	} else {
		u.nibbles(s, bits)
	}
	s.op("ADDQ $1024, DI")
	s.op("DECQ BX")
	s.op("JNZ record")
	s.op("ADDQ unpacking_step(AX), SI")
	if bits == 5 {
		s.op("ADDQ unpacking_fifthStep(AX), DX")
	}
	s.op("DECQ R13")
	s.op("JNZ tile")
	packEnd(s)
	return name
}

// eight writes a record of codes of 8 bits.
func (u unpacking) eight(s *source) {
	for at := 0; at < 1024; at += u.bytes {
		u.op(s, "VPADDB %d(SI), V#14, V#0", at)
		if at%64 == 0 {
			s.op("PREFETCHT0 %d(SI)", 4096+at)
		}
		u.op(s, "VMOVUPS V#0, %d(DI)", at)
	}
	s.op("ADDQ $1024, SI")
}

// nibbles writes a record of codes of 4 or 5 bits.
func (u unpacking) nibbles(s *source, bits int) {
	for v := 0; v < 128; v += u.bytes {
		if bits == 5 {
			u.op(s, "VMOVUPS %d(DX), V#4", v)
		}
		for i := range 4 {
			u.op(s, "VMOVUPS %d(SI), V#1", 128*i+v)
			if v%64 == 0 {
				s.op("PREFETCHT0 %d(SI)", 4096+128*i+v)
			}
			u.and(s, 15, 1, 0)
			u.op(s, "VPSRLD $4, V#1, V#1")
			u.and(s, 15, 1, 1)
			if bits == 4 {
				u.op(s, "VPSHUFB V#0, V#14, V#0")
				u.op(s, "VPSHUFB V#1, V#14, V#1")
			} else {
				u.op(s, "VPSHUFB V#10, V#4, V#5")
				u.op(s, "VPSRLD $8, V#4, V#4")
				u.fifth(s, 12, 0)
				u.fifth(s, 11, 1)
			}
			u.op(s, "VMOVUPS V#0, %d(DI)", 256*i+v)
			u.op(s, "VMOVUPS V#1, %d(DI)", 256*i+128+v)
		}
	}
	s.op("ADDQ $512, SI")
	if bits == 5 {
		s.op("ADDQ $128, DX")
	}
}

func (u unpacking) and(s *source, a, b, to int) {
	if u.register == 'Z' {
		s.op("VPANDD Z%d, Z%d, Z%d", a, b, to)
	} else {
		s.op("VPAND Y%d, Y%d, Y%d", a, b, to)
	}
}

// fifth adds 16 to the bytes whose bit of a mask is set.
func (u unpacking) fifth(s *source, mask, to int) {
	if u.register == 'Z' {
		s.op("VPTESTMB Z%d, Z5, K1", mask)
		s.op("VPADDB Z13, Z%d, K1, Z%d", to, to)
		return
	}
	s.op("VPAND Y%d, Y5, Y6", mask)
	s.op("VPCMPEQB Y%d, Y6, Y6", mask)
	s.op("VPAND Y13, Y6, Y6")
	s.op("VPADDB Y6, Y%d, Y%d", to, to)
}

// sumAVX512 writes a kernel that multiplies records of so many rows of A by unsigned codes, with so many groups in a
// record.
//
// Registers: AX the argument; SI the codes and R15 the scales; CX a record of the first row, R8, R9 and R10 1, 3 and 5
// rows of them; DI the destination and DX a row of it; BX the records left; R11 what is prefetched, and R12 lines of
// that for a record; R13 whether something is subtracted.
//
// Vectors: sums from 0 on, behind them those of integers; 24 and 25 codes or scales, 26 an element of A, 27 and 28 what
// is in the making.
func sumAVX512(s *source, rows, groups int) string {
	name := fmt.Sprintf("sum%dAVX512_%d", groups, rows)
	s.begin(name, 0)
	for _, field := range [][2]string{
		{"codes", "SI"}, {"scales", "R15"}, {"a", "CX"}, {"aRow", "R8"}, {"c", "DI"}, {"cRow", "DX"}, {"count", "BX"},
		{"min", "R13"}, {"ahead", "R11"}, {"lines", "R12"},
	} {
		s.op("MOVQ summing_%s(AX), %s", field[0], field[1])
	}
	s.op("LEAQ (R8)(R8*2), R9")
	s.op("LEAQ (R8)(R8*4), R10")
	for v := range 2 {
		s.op("KMOVW summing_lanes+%d(AX), K%d", 2*v, v+1)
	}
	for i := range 2 * rows {
		s.op("VXORPS Z%d, Z%d, Z%d", i, i, i)
		if i%2 == 0 { // rows of C are often pages apart, and are not in L1 at the end
			s.op("PREFETCHT0 (DI)")
			s.op("PREFETCHT0 64(DI)")
			s.op("ADDQ DX, DI")
		}
	}
	s.op("PCALIGN $32")
	s.label("record")
	prefetchLines(s)
	for g := range groups {
		integerGroup(s, rows, g, 8/groups)
	}
	s.op("ADDQ $64, CX")
	s.op("ADDQ $1024, SI")
	s.op("DECQ BX")
	s.op("JNZ record")
	s.op("CMPQ summing_mode(AX), $const_added")
	s.op("JNE store")
	each := func(f func(sum, v int)) {
		s.op("MOVQ summing_c(AX), DI")
		for i := range 2 * rows {
			if i > 0 && i%2 == 0 {
				s.op("ADDQ DX, DI")
			}
			f(i, i%2)
		}
	}
	each(func(sum, v int) { s.op("VADDPS %d(DI), Z%d, K%d, Z%d", 64*v, sum, v+1, sum) })
	s.label("store")
	each(func(sum, v int) { s.op("VMOVUPS Z%d, K%d, %d(DI)", sum, v+1, 64*v) })
	packEnd(s)
	return name
}

// prefetchLines prefetches R12 lines of memory, from R11 on, for a record. It changes R14.
func prefetchLines(s *source) {
	s.op("MOVQ R12, R14")
	s.op("TESTQ R14, R14")
	s.op("JE prefetched")
	s.label("prefetch")
	s.op("PREFETCHT0 (R11)")
	s.op("ADDQ $64, R11")
	s.op("DECQ R14")
	s.op("JNZ prefetch")
	s.label("prefetched")
}

// integerGroup writes a group of a record: so many dwords.
func integerGroup(s *source, rows, group, dwords int) {
	whole := 2 * rows // the first sum of integers
	at := func(field string, offset, r int) string { return fmt.Sprintf("record_%s+%d%s", field, offset, row(r)) }
	for r := range rows {
		s.op("VPBROADCASTD %s, Z%d", at("start", 4*group, r), whole+2*r)
		s.op("VMOVDQA32 Z%d, Z%d", whole+2*r, whole+2*r+1)
	}
	for i := group * dwords; i < (group+1)*dwords; i++ {
		for v := range 2 {
			s.op("VMOVDQU32 %d(SI), Z%d", 128*i+64*v, 24+v)
		}
		for r := range rows {
			s.op("VPBROADCASTD %s, Z26", at("q", 4*i, r))
			for v := range 2 {
				s.op("VPDPBUSD Z26, Z%d, Z%d", 24+v, whole+2*r+v)
			}
		}
	}
	for v := range 2 {
		s.op("VMOVUPS %d(R15), Z%d", 64*v, 24+v)
	}
	for r := range rows {
		s.op("VBROADCASTSS %s, Z26", at("a", 0, r))
		for v := range 2 {
			s.op("VCVTDQ2PS Z%d, Z%d", whole+2*r+v, whole+2*r+v)
			s.op("VMULPS Z26, Z%d, Z%d", 24+v, 27+v)
			s.op("VFMADD231PS Z%d, Z%d, Z%d", whole+2*r+v, 27+v, 2*r+v)
		}
	}
	s.op("TESTQ R13, R13")
	s.op("JE same%d", group)
	for v := range 2 {
		s.op("VMOVUPS %d(R15), Z%d", 128+64*v, 24+v)
	}
	for r := range rows {
		s.op("VBROADCASTSS %s, Z26", at("sum", 4*group, r))
		for v := range 2 {
			s.op("VFMADD231PS Z26, Z%d, Z%d", 24+v, 2*r+v)
		}
	}
	s.label(fmt.Sprintf("same%d", group))
	s.op("ADDQ $256, R15")
}
