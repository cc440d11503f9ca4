package main

import "fmt"

// integerRows are the most rows of A of a kernel that multiplies integers.
const integerRows = 6

// integerAVX512 writes the kernels for products of integers.
func integerAVX512() string {
	s := newSource()
	s.WriteString(`
// The low byte of each dword, four times.
DATA lowBytes<>+0(SB)/8, $0x0404040400000000
DATA lowBytes<>+8(SB)/8, $0x0c0c0c0c08080808
GLOBL lowBytes<>(SB), RODATA, $16
`)
	roundAVX512(s)
	var unpack, sum []string
	for _, bits := range codeBits {
		unpack = append(unpack, unpackAVX512(s, bits))
	}
	for _, groups := range []int{1, 2} {
		for rows := range integerRows {
			sum = append(sum, sumAVX512(s, rows+1, groups))
		}
	}
	s.chooseAMD64("unpackAVX512", [2]string{"t+0(FP)", "unpacking_kernel"}, unpack)
	s.chooseAMD64("sumAVX512", [2]string{"t+0(FP)", "summing_kernel"}, sum)
	return s.String()
}

// roundAVX512 writes the kernel that rounds numbers of a row of A.
//
// Registers: AX the argument; SI the numbers and DI their records; BX the records left; R8 the bias, negative; R9
// whether groups are of 16; R10 and R11 the sums of the two groups.
func roundAVX512(s *source) {
	s.WriteString("\n// func roundAVX512(t *rounding)\nTEXT ·roundAVX512(SB), NOSPLIT, $0-8\n")
	s.op("MOVQ t+0(FP), AX")
	s.op("MOVQ rounding_src(AX), SI")
	s.op("MOVQ rounding_dst(AX), DI")
	s.op("MOVQ rounding_count(AX), BX")
	s.op("MOVQ rounding_bias(AX), R8")
	s.op("NEGQ R8")
	s.op("MOVQ rounding_half(AX), R9")
	s.op("MOVL $0x7fffffff, CX")
	s.op("VPBROADCASTD CX, Z31")
	s.op("MOVL $0x42fe0000, CX") // 127
	s.op("VMOVD CX, X30")
	s.op("MOVL $0x3f800000, CX") // 1
	s.op("VMOVD CX, X29")
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
	s.op("TESTQ R9, R9")
	s.op("JNE second")
	s.op("ADDL R11, R10")
	s.op("JMP first")
	s.label("second")
	sum := func(group, register int) {
		s.op("VCVTSI2SSL R%d, X8, X4", register)
		s.op("VMULSS X2, X4, X4")
		s.op("VMOVSS X4, record_sum+%d(DI)", 4*group)
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

// unpackAVX512 writes a kernel that stores the unsigned codes of some tiles.
//
// Registers: AX the argument; SI the codes, DX the fifth bits and DI the destination; BX and R13 the records and tiles
// left. Vectors: 31 the mask of nibbles, 30 the table or the bias; 29 to 26 are for fifth bits: 16, the masks of bytes,
// and the low bytes.
func unpackAVX512(s *source, bits int) string {
	name := fmt.Sprintf("unpack%dAVX512", bits)
	s.begin(name, 0)
	s.op("MOVQ unpacking_codes(AX), SI")
	s.op("MOVQ unpacking_dst(AX), DI")
	s.op("MOVQ unpacking_tiles(AX), R13")
	constant := func(value string, register int) {
		s.op("MOVL %s, CX", value)
		s.op("VPBROADCASTD CX, Z%d", register)
	}
	constant("$0x0f0f0f0f", 31)
	switch bits {
	case 4:
		s.op("MOVQ unpacking_table(AX), CX")
		s.op("VBROADCASTI32X4 (CX), Z30")
	case 5:
		s.op("MOVQ unpacking_fifths(AX), DX")
		constant("$0x10101010", 29)
		constant("$0x08040201", 28)
		constant("$0x80402010", 27)
		s.op("VBROADCASTI32X4 lowBytes<>(SB), Z26")
	case 8:
		s.op("MOVQ unpacking_bias(AX), CX")
		s.op("VPBROADCASTB CX, Z30")
	}
	s.label("tile")
	s.op("MOVQ unpacking_count(AX), BX")
	s.label("record")
	if bits == 8 {
		unpackBytes(s)
	} else {
		unpackNibbles(s, bits)
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

// unpackBytes writes a record of codes of 8 bits.
func unpackBytes(s *source) {
	for i := range 16 {
		s.op("VPADDB %d(SI), Z30, Z%d", 64*i, i%4)
		s.op("PREFETCHT0 %d(SI)", 4096+64*i)
		s.op("VMOVDQU32 Z%d, %d(DI)", i%4, 64*i)
	}
	s.op("ADDQ $1024, SI")
}

// unpackNibbles writes a record of codes of 4 or 5 bits.
func unpackNibbles(s *source, bits int) {
	if bits == 5 {
		for v := range 2 {
			s.op("VMOVDQU32 %d(DX), Z%d", 64*v, 8+v)
		}
		s.op("ADDQ $128, DX")
	}
	for i := range 4 {
		for v := range 2 {
			low, high := 4*v, 4*v+1
			s.op("VMOVDQU32 %d(SI), Z%d", 128*i+64*v, high)
			s.op("PREFETCHT0 %d(SI)", 4096+128*i+64*v)
			s.op("VPANDD Z31, Z%d, Z%d", high, low)
			s.op("VPSRLD $4, Z%d, Z%d", high, high)
			s.op("VPANDD Z31, Z%d, Z%d", high, high)
			if bits == 4 {
				s.op("VPSHUFB Z%d, Z30, Z%d", low, low)
				s.op("VPSHUFB Z%d, Z30, Z%d", high, high)
			} else {
				s.op("VPSHUFB Z26, Z%d, Z%d", 8+v, 10+v)
				s.op("VPSRLD $8, Z%d, Z%d", 8+v, 8+v)
				s.op("VPTESTMB Z28, Z%d, K1", 10+v)
				s.op("VPTESTMB Z27, Z%d, K2", 10+v)
				s.op("VPADDB Z29, Z%d, K1, Z%d", low, low)
				s.op("VPADDB Z29, Z%d, K2, Z%d", high, high)
			}
			s.op("VMOVDQU32 Z%d, %d(DI)", low, 256*i+64*v)
			s.op("VMOVDQU32 Z%d, %d(DI)", high, 256*i+128+64*v)
		}
	}
	s.op("ADDQ $512, SI")
}

// sumAVX512 writes a kernel that multiplies records of so many rows of A by unsigned codes, with so many groups in a
// record.
//
// Registers: AX the argument; SI the codes and R15 the scales; CX a record of the first row, R8, R9 and R10 1, 3 and 5
// rows of them; DI the destination and DX a row of it; BX the records left; R13 whether something is subtracted.
//
// Vectors: sums from 0 on, behind them those of integers; 24 and 25 codes or scales, 26 an element of A, 27 and 28 what
// is in the making.
func sumAVX512(s *source, rows, groups int) string {
	name := fmt.Sprintf("sum%dAVX512_%d", groups, rows)
	s.begin(name, 0)
	for _, field := range [][2]string{
		{"codes", "SI"}, {"scales", "R15"}, {"a", "CX"}, {"aRow", "R8"}, {"c", "DI"}, {"cRow", "DX"}, {"count", "BX"}, {"min", "R13"},
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
