package main

import "fmt"

// integerRowsAVX2 are the most rows of A of a kernel of AVX2 that multiplies integers.
const integerRowsAVX2 = 2

// integerAVX2 writes the kernels for products of integers, as integerAVX512 does.
//
// Sums of two products are 16 bits, which holds those of 8, 4 and 2 dwords where codes are below 16, 32 and 64. Larger
// ones are multiplied as signed numbers, their magnitudes by elements of A with their sign: a sum is 2·128·127 at most.
func integerAVX2() string {
	s := newSource()
	s.WriteString(lowBytes)
	for _, c := range []struct{ name, value string }{{"ones", "$0x0001000100010001"}, {"signs", "$0x8080808080808080"}} {
		s.WriteString("\n")
		for i := range 4 {
			fmt.Fprintf(s, "DATA %s<>+%d(SB)/8, %s\n", c.name, 8*i, c.value)
		}
		fmt.Fprintf(s, "GLOBL %s<>(SB), RODATA, $32\n", c.name)
	}
	fmt.Fprintf(s, "\nDATA order<>+0(SB)/8, $0x0000000400000000\nDATA order<>+8(SB)/8, $0x0000000500000001\n"+
		"DATA order<>+16(SB)/8, $0x0000000600000002\nDATA order<>+24(SB)/8, $0x0000000700000003\n"+
		"GLOBL order<>(SB), RODATA, $32\n")
	roundAVX2(s)
	var unpack, sum []string
	for _, bits := range codeBits {
		unpack = append(unpack, unpacking{"AVX2", 'Y', 32}.write(s, bits))
	}
	for _, dwords := range []int{8, 4, 2, 1} {
		for _, groups := range []int{1, 2} {
			for rows := range integerRowsAVX2 {
				sum = append(sum, sumsAVX2{rows + 1, groups, dwords}.write(s))
			}
		}
	}
	s.chooseAMD64("unpackAVX2", byUnpacking, unpack)
	s.chooseAMD64("sumAVX2", bySumming, sum)
	return s.String()
}

// roundAVX2 writes the kernel that rounds numbers of a row of A.
//
// Registers are those of roundAVX512.
func roundAVX2(s *source) {
	s.WriteString("\n// func roundAVX2(t *rounding)\nTEXT ·roundAVX2(SB), NOSPLIT, $0-8\n")
	roundBegin(s)
	s.op("VPCMPEQD Y15, Y15, Y15")
	s.op("VPSRLD $1, Y15, Y15")
	roundConstants(s, 14, 13)
	s.label("record")
	s.op("VPXOR Y8, Y8, Y8")
	for v := range 4 {
		s.op("VMOVUPS %d(SI), Y%d", 32*v, v)
		s.op("VPAND Y15, Y%d, Y%d", v, 4+v)
	}
	s.op("VMOVDQU Y8, (DI)")
	s.op("VMOVDQU Y8, 32(DI)")
	s.op("VPMAXUD Y5, Y4, Y4")
	s.op("VPMAXUD Y7, Y6, Y6")
	s.op("VPMAXUD Y6, Y4, Y4")
	s.op("VEXTRACTI128 $1, Y4, X5")
	s.op("VPMAXUD X5, X4, X4")
	s.op("VPSHUFD $0x4e, X4, X5")
	s.op("VPMAXUD X5, X4, X4")
	s.op("VPSHUFD $0xb1, X4, X5")
	s.op("VPMAXUD X5, X4, X4")
	s.op("VMOVD X4, CX")
	s.op("CMPL CX, $0x7f800000")
	s.op("JCC infinite")
	s.op("VDIVSS X14, X4, X4") // a
	s.op("VMOVD X4, CX")
	s.op("CMPL CX, $0x00800000") // the least normal number
	s.op("JCS next")
	s.op("VMOVSS X4, record_a(DI)")
	s.op("VDIVSS X4, X13, X5")
	s.op("VBROADCASTSS X5, Y5")
	for v := range 4 {
		s.op("VMULPS Y5, Y%d, Y%d", v, v)
		s.op("VCVTPS2DQ Y%d, Y%d", v, v)
	}
	for g := range 2 {
		s.op("VPADDD Y%d, Y%d, Y6", 2*g+1, 2*g)
		s.op("VEXTRACTI128 $1, Y6, X7")
		s.op("VPADDD X7, X6, X6")
		s.op("VPSHUFD $0x4e, X6, X7")
		s.op("VPADDD X7, X6, X6")
		s.op("VPSHUFD $0xb1, X6, X7")
		s.op("VPADDD X7, X6, X6")
		s.op("VMOVD X6, R%d", 10+g)
		s.op("VPACKSSDW Y%d, Y%d, Y%d", 2*g+1, 2*g, 2*g)
	}
	s.op("VPACKSSWB Y2, Y0, Y0")
	s.op("VMOVDQU order<>(SB), Y1")
	s.op("VPERMD Y0, Y1, Y0")
	s.op("VMOVDQU Y0, (DI)")
	roundEnd(s, 4)
}

// sumsAVX2 writes a kernel that multiplies records of so many rows of A by unsigned codes, with so many groups in a
// record, of which so many dwords are added up in 16 bits. It goes through the columns twice, 16 at once.
//
// Registers: AX the argument; SI the codes and R15 the scales; CX a record of the first row and R8 a row of them; DI
// the destination and DX a row of it; BX the records left; R9 the first byte of the columns; R11 what is prefetched,
// and R12 lines of that for a record; R13 whether something is subtracted.
//
// Vectors: sums from 0 on; 4 to 7 those of integers, 8 to 11 those of 16 bits; 12 codes or scales, 13 and 14 elements
// of A, 15 what is in the making.
type sumsAVX2 struct{ rows, groups, dwords int }

func (k sumsAVX2) write(s *source) string {
	name := fmt.Sprintf("sum%dx%dAVX2_%d", k.groups, k.dwords, k.rows)
	s.begin(name, 0)
	s.op("MOVQ summing_aRow(AX), R8")
	s.op("MOVQ summing_cRow(AX), DX")
	s.op("MOVQ summing_min(AX), R13")
	s.op("MOVQ summing_ahead(AX), R11")
	s.op("MOVQ summing_lines(AX), R12")
	s.op("XORQ R9, R9")
	s.label("half")
	for _, field := range [][2]string{{"codes", "SI"}, {"scales", "R15"}, {"a", "CX"}, {"c", "DI"}, {"count", "BX"}} {
		s.op("MOVQ summing_%s(AX), %s", field[0], field[1])
	}
	for _, register := range []string{"SI", "R15", "DI"} {
		s.op("ADDQ R9, %s", register)
	}
	for i := range 2 * k.rows {
		s.op("VXORPS Y%d, Y%d, Y%d", i, i, i)
	}
	s.label("record")
	prefetchLines(s)
	for g := range k.groups {
		k.group(s, g)
	}
	s.op("ADDQ $64, CX")
	s.op("ADDQ $1024, SI")
	s.op("DECQ BX")
	s.op("JNZ record")
	at := func(i int) string { return fmt.Sprintf("%d%s", 32*(i%2), []string{"(DI)", "(DI)(DX*1)"}[i/2]) }
	s.op("CMPQ summing_mode(AX), $const_added")
	s.op("JNE store")
	for i := range 2 * k.rows {
		s.op("VADDPS %s, Y%d, Y%d", at(i), i, i)
	}
	s.label("store")
	for i := range 2 * k.rows {
		s.op("VMOVUPS Y%d, %s", i, at(i))
	}
	s.op("XORQ R12, R12")
	s.op("ADDQ $64, R9")
	s.op("CMPQ R9, $128")
	s.op("JNE half")
	packEnd(s)
	return name
}

// group writes a group of a record.
func (k sumsAVX2) group(s *source, group int) {
	at := func(field string, offset, r int) string {
		return fmt.Sprintf("record_%s+%d%s", field, offset, []string{"(CX)", "(CX)(R8*1)"}[r])
	}
	for r := range k.rows {
		if k.dwords == 1 {
			s.op("VPXOR Y%d, Y%d, Y%d", 4+2*r, 4+2*r, 4+2*r)
		} else {
			s.op("VPBROADCASTD %s, Y%d", at("start", 4*group, r), 4+2*r)
		}
		s.op("VMOVDQA Y%d, Y%d", 4+2*r, 5+2*r)
	}
	n := 8 / k.groups
	for i := range n {
		for r := range k.rows {
			s.op("VPBROADCASTD %s, Y%d", at("q", 4*(group*n+i), r), 13+r)
		}
		for v := range 2 {
			s.op("VMOVDQU %d(SI), Y12", 128*(group*n+i)+32*v)
			k.products(s, v, i%k.dwords == 0)
			if (i+1)%k.dwords > 0 && i < n-1 {
				continue
			}
			for r := range k.rows {
				s.op("VPMADDWD ones<>(SB), Y%d, Y%d", 8+2*r+v, 8+2*r+v)
				s.op("VPADDD Y%d, Y%d, Y%d", 8+2*r+v, 4+2*r+v, 4+2*r+v)
			}
		}
	}
	for v := range 2 {
		for r := range k.rows {
			s.op("VBROADCASTSS %s, Y15", at("a", 0, r))
			s.op("VMULPS %d(R15), Y15, Y15", 32*v)
			s.op("VCVTDQ2PS Y%d, Y12", 4+2*r+v)
			s.op("VFMADD231PS Y12, Y15, Y%d", 2*r+v)
		}
	}
	s.op("TESTQ R13, R13")
	s.op("JE same%d", group)
	for v := range 2 {
		for r := range k.rows {
			s.op("VBROADCASTSS %s, Y15", at("sum", 4*group, r))
			s.op("VFMADD231PS %d(R15), Y15, Y%d", 128+32*v, 2*r+v)
		}
	}
	s.label(fmt.Sprintf("same%d", group))
	s.op("ADDQ $256, R15")
}

// products writes the products of a dword of each row, which are added to those before unless they are the first.
func (k sumsAVX2) products(s *source, v int, first bool) {
	if k.dwords == 1 {
		s.op("VPXOR signs<>(SB), Y12, Y12")
		s.op("VPABSB Y12, Y15")
		for r := range k.rows {
			s.op("VPSIGNB Y12, Y%d, Y%d", 13+r, 8+2*r+v)
			s.op("VPMADDUBSW Y%d, Y15, Y%d", 8+2*r+v, 8+2*r+v)
		}
		return
	}
	for r := range k.rows {
		if first {
			s.op("VPMADDUBSW Y%d, Y12, Y%d", 13+r, 8+2*r+v)
			continue
		}
		s.op("VPMADDUBSW Y%d, Y12, Y15", 13+r)
		s.op("VPADDW Y15, Y%d, Y%d", 8+2*r+v, 8+2*r+v)
	}
}
