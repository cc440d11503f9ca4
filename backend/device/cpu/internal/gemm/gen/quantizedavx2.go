package main

import "fmt"

// quantizedRowsAVX2 are the most rows of A of a kernel of AVX2 that multiplies codes in registers.
const quantizedRowsAVX2 = 2

// quantizedAVX2 writes the kernels for codes with scales, as quantizedAVX512 does.
func quantizedAVX2() string {
	s := newSource()
	scalesAVX2(s)
	var dequantize, multiply []string
	for _, bits := range codeBits {
		q := codesAVX2{bits: bits}
		q.write(s)
		dequantize = append(dequantize, q.name())
		multiply = append(multiply, "")
		for q.rows = 1; q.rows <= quantizedRowsAVX2; q.rows++ {
			q.write(s)
			multiply = append(multiply, q.name())
		}
	}
	s.chooseAMD64("dequantizeAVX2", byKernel, dequantize)
	s.chooseAMD64("multiplyAVX2", byKernel, multiply)
	return s.String()
}

// scalesAVX2 writes the kernel that makes float32 scales of those of some tiles.
//
// Registers are those of scalesAVX512; a tile is gone through for each of four vectors of columns, the number of which
// is in R12, and R11 its place.
func scalesAVX2(s *source) {
	s.WriteString("\n// func scalesAVX2(t *scaling)\nTEXT ·scalesAVX2(SB), NOSPLIT, $0-8\n")
	s.op("MOVQ t+0(FP), AX")
	s.op("MOVQ scaling_tile(AX), SI")
	s.op("MOVQ scaling_dst(AX), R15")
	s.op("MOVQ scaling_m(AX), R8")
	s.op("MOVQ scaling_s(AX), R9")
	s.op("MOVQ scaling_n(AX), R10")
	s.op("MOVQ scaling_tiles(AX), BX")
	s.op("VPCMPEQD Y7, Y7, Y7")
	s.op("VPSLLD $31, Y7, Y7")
	s.label("tile")
	s.op("XORQ R12, R12")
	s.label("vector")
	s.op("MOVQ R15, DI")
	s.op("LEAQ (DI)(R12*4), DI")
	s.op("LEAQ (SI)(R12*2), R11")
	s.op("CMPQ scaling_bfloat16(AX), $0")
	s.op("JNE bfloat16")
	s.op("VCVTPH2PS (R11), Y0")
	s.op("JMP minimum")
	s.label("bfloat16")
	s.op("VPMOVZXWD (R11), Y0")
	s.op("VPSLLD $16, Y0, Y0")
	s.label("minimum")
	s.op("VMOVAPS Y7, Y2")
	s.op("TESTQ R8, R8")
	s.op("JE second")
	s.op("VCVTPH2PS (R11)(R8*1), Y2")
	s.op("VPXOR Y7, Y2, Y2")
	s.label("second")
	s.op("LEAQ (SI)(R12*1), R11")
	s.op("LEAQ (R11)(R9*1), CX")
	s.op("LEAQ (R11)(R10*1), DX")
	s.op("MOVQ scaling_groups(AX), R13")
	scaleGroupAVX2(s)
	s.op("DECQ R13")
	s.op("JNZ group")
	s.op("ADDQ $8, R12")
	s.op("CMPQ R12, $32")
	s.op("JNE vector")
	s.op("MOVQ scaling_groups(AX), R13")
	s.op("SHLQ $8, R13")
	s.op("ADDQ R13, R15")
	s.op("ADDQ scaling_step(AX), SI")
	s.op("DECQ BX")
	s.op("JNZ tile")
	packEnd(s)
}

// scaleGroupAVX2 writes the scales of eight columns of a group: d and -m as they are, or multiplied by s and n.
func scaleGroupAVX2(s *source) {
	s.label("group")
	s.op("TESTQ R9, R9")
	s.op("JE same")
	s.op("VPMOVSXBD (CX), Y4")
	s.op("VCVTDQ2PS Y4, Y4")
	s.op("VMULPS Y0, Y4, Y4")
	s.op("VMOVUPS Y4, (DI)")
	s.op("ADDQ $32, CX")
	s.op("TESTQ R10, R10")
	s.op("JE sameMinimum")
	s.op("VPMOVZXBD (DX), Y4")
	s.op("VCVTDQ2PS Y4, Y4")
	s.op("VMULPS Y2, Y4, Y4")
	s.op("VMOVUPS Y4, 128(DI)")
	s.op("ADDQ $32, DX")
	s.op("JMP stored")
	s.label("same")
	s.op("VMOVUPS Y0, (DI)")
	s.label("sameMinimum")
	s.op("VMOVUPS Y2, 128(DI)")
	s.label("stored")
	s.op("ADDQ $256, DI")
}

// codesAVX2 writes kernels for codes of so many bits: with rows those that multiply that many rows of A, else those
// that dequantize. Products of a number and its scale are exact, so they are rounded once with a multiplication and an
// addition too, which read the scales in memory.
//
// Registers: AX the argument; SI the codes, and DX the fifth bits; R15 the scales; CX a column of A, R8 from a row of
// it to the next; DI the destination; BX, R12 and R13 the lines, groups and tiles left.
//
// Vectors: sums from 0 on; 8 to 11 an element of A, and numbers in the making; 12 and 13 the two halves of the table,
// or 12 the number of code 0 and 13 the mask of the fifth bit; 14 and 15 masks.
type codesAVX2 struct{ bits, rows int }

func (q codesAVX2) name() string {
	if q.rows == 0 {
		return fmt.Sprintf("dequantize%dAVX2", q.bits)
	}
	return fmt.Sprintf("multiply%dAVX2_%d", q.bits, q.rows)
}

func (q codesAVX2) write(s *source) {
	q.begin(s)
	lines := 8
	if q.bits == 8 {
		lines = 4
	}
	s.label("tile")
	s.op("MOVQ coded_groups(AX), R12")
	s.label("group")
	s.op("XORQ R10, R10") // of fifth bits that are used
	s.op("MOVQ coded_lines(AX), BX")
	s.op("PCALIGN $32")
	s.label("line")
	q.line(s, lines)
	s.op("ADDQ $8, R10")
	s.op("ADDQ $128, SI")
	s.op("DECQ BX")
	s.op("JNZ line")
	s.op("ADDQ $256, R15")
	if q.bits == 5 {
		s.op("ADDQ $128, DX")
	}
	s.op("DECQ R12")
	s.op("JNZ group")
	s.op("ADDQ coded_step(AX), SI")
	if q.bits == 5 {
		s.op("ADDQ coded_fifthStep(AX), DX")
	}
	s.op("DECQ R13")
	s.op("JNZ tile")
	if q.rows > 0 {
		s.op("CMPQ coded_mode(AX), $const_added")
		s.op("JNE store")
		q.eachSum(func(sum int, at string) { s.op("VADDPS %s, Y%d, Y%d", at, sum, sum) })
		s.label("store")
		q.eachSum(func(sum int, at string) { s.op("VMOVUPS Y%d, %s", sum, at) })
	}
	packEnd(s)
}

// begin loads the arguments, and sets the sums.
func (q codesAVX2) begin(s *source) {
	s.begin(q.name(), 8)
	s.op("MOVQ coded_codes(AX), SI")
	s.op("MOVQ coded_scales(AX), R15")
	s.op("MOVQ coded_table(AX), R12")
	switch q.bits {
	case 4:
		s.op("VMOVUPS (R12), Y12")
		s.op("VMOVUPS 32(R12), Y13")
	case 5:
		s.op("VBROADCASTSS (R12), Y12")
		s.op("MOVQ coded_fifths(AX), DX")
		s.op("VPCMPEQD Y13, Y13, Y13")
		s.op("VPSRLD $28, Y13, Y14") // 15
		s.op("VPSRLD $31, Y13, Y13")
		s.op("VPSLLD $4, Y13, Y13") // 16
	}
	s.op("MOVQ coded_aRow(AX), R8")
	s.op("MOVQ coded_a(AX), CX")
	s.op("MOVQ coded_c(AX), DI")
	s.op("MOVQ coded_cRow(AX), R9")
	s.op("MOVQ coded_tiles(AX), R13")
	if q.rows > 0 {
		s.op("CMPQ coded_mode(AX), $const_resume")
		s.op("JNE zero")
		q.eachSum(func(sum int, at string) { s.op("VMOVUPS %s, Y%d", at, sum) })
		s.op("JMP tile")
		s.label("zero")
		for i := range 4 * q.rows {
			s.op("VXORPS Y%d, Y%d, Y%d", i, i, i)
		}
	}
}

// line goes through the rows of a line.
func (q codesAVX2) line(s *source, lines int) {
	if q.bits == 5 {
		s.op("VMOVD R10, X15")
	}
	for k := range lines {
		for r := range q.rows {
			s.op("VBROADCASTSS %d%s, Y%d", 4*k, []string{"(CX)", "(CX)(R8*1)"}[r], 8+r)
		}
		for v := range 4 {
			q.number(s, k, v)
			if q.rows == 0 {
				s.op("VMOVUPS Y10, %d(DI)", 128*k+32*v)
			}
			for r := range q.rows {
				s.op("VFMADD231PS Y10, Y%d, Y%d", 8+r, 4*r+v)
			}
		}
	}
	if q.rows == 0 {
		s.op("ADDQ $%d, DI", 128*lines)
	} else {
		s.op("ADDQ $%d, CX", 4*lines)
	}
}

// number makes Y10 the numbers of a vector of columns in row k of a line.
func (q codesAVX2) number(s *source, k, v int) {
	s.op("VMOVDQU %d(SI), Y10", 32*v)
	if shift := 8*(k%4) + 4*(k/4); q.bits < 8 && shift > 0 {
		s.op("VPSRLD $%d, Y10, Y10", shift)
	}
	switch q.bits {
	case 4: // the third bit chooses the half of the table
		s.op("VPSLLD $28, Y10, Y11")
		s.op("VPERMPS Y12, Y10, Y15")
		s.op("VPERMPS Y13, Y10, Y10")
		s.op("VBLENDVPS Y11, Y10, Y15, Y10")
	case 5:
		s.op("VPAND Y14, Y10, Y10")
		s.op("VMOVDQU %d(DX), Y11", 32*v)
		s.op("VPSRLD X15, Y11, Y11")
		if k > 4 {
			s.op("VPSRLD $%d, Y11, Y11", k-4)
		} else if k < 4 {
			s.op("VPSLLD $%d, Y11, Y11", 4-k)
		}
		s.op("VPAND Y13, Y11, Y11")
		s.op("VPOR Y11, Y10, Y10")
		s.op("VCVTDQ2PS Y10, Y10")
		s.op("VADDPS Y12, Y10, Y10")
	case 8:
		s.op("VPSLLD $%d, Y10, Y10", 24-8*k)
		s.op("VPSRAD $24, Y10, Y10")
		s.op("VCVTDQ2PS Y10, Y10")
	}
	s.op("VMULPS %d(R15), Y10, Y10", 32*v)
	s.op("VADDPS %d(R15), Y10, Y10", 128+32*v)
}

// eachSum goes through the sums and their places in C.
func (q codesAVX2) eachSum(f func(sum int, at string)) {
	for r := range q.rows {
		for v := range 4 {
			f(4*r+v, fmt.Sprintf("%d%s", 32*v, []string{"(DI)", "(DI)(R9*1)"}[r]))
		}
	}
}
