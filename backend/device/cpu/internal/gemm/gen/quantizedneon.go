package main

import "fmt"

// quantizedRowsNEON are the most rows of A of a kernel of NEON that multiplies codes in registers.
const quantizedRowsNEON = 2

// quantizedNEON writes the kernels for codes with scales, as quantizedAVX512 does.
func quantizedNEON() string {
	s := newSource()
	scalesNEON(s)
	var dequantize, multiply []string
	for _, bits := range codeBits {
		q := codesNEON{bits: bits}
		q.write(s)
		dequantize = append(dequantize, q.name())
		multiply = append(multiply, "")
		for q.rows = 1; q.rows <= quantizedRowsNEON; q.rows++ {
			q.write(s)
			multiply = append(multiply, q.name())
		}
	}
	s.chooseNEON("dequantizeNEON", byKernel, dequantize)
	s.chooseNEON("multiplyNEON", byKernel, multiply)
	return s.String()
}

// The assembler does not know these instructions on vectors of four numbers, so they are written as numbers.
const (
	neonFADD  = 0x4e20d400
	neonFMUL  = 0x6e20dc00
	neonFNEG  = 0x6ea0f800
	neonFCVTL = 0x0e217800
	neonSCVTF = 0x4e21d800
	neonSXTLB = 0x0f08a400 // of bytes
	neonSXTLH = 0x0f10a400 // of halves
	neonUXTLB = 0x2f08a400
	neonUXTLH = 0x2f10a400
	neonSSHR  = 0x4f280400 // by 24
)

// word writes an instruction with a destination and one or two sources.
func (s *source) word(code, to, from, second int, comment string) {
	s.op("WORD $0x%08x // %s V%d, V%d, V%d", code|second<<16|from<<5|to, comment, to, from, second)
}

// scalesNEON writes the kernel that makes float32 scales of those of some tiles.
//
// Registers: R0 the argument; R1 where they go; R2 a tile; R3, R4 and R5 the offsets of m, s and n; R6 the tiles and R7
// the groups left; R8 the first of four columns; R9 to R13 places.
func scalesNEON(s *source) {
	s.WriteString("\n// func scalesNEON(t *scaling)\nTEXT ·scalesNEON(SB), NOSPLIT, $0-8\n")
	s.op("MOVD t+0(FP), R0")
	for i, field := range []string{"dst", "tile", "m", "s", "n", "tiles"} {
		s.op("MOVD scaling_%s(R0), R%d", field, i+1)
	}
	s.op("MOVD $0x80000000, R9")
	s.op("VDUP R9, V7.S4")
	s.label("tile")
	s.op("MOVD $0, R8")
	s.label("vector")
	s.op("ADD R8<<2, R1, R9")
	s.op("ADD R8<<1, R2, R10")
	s.op("FMOVD (R10), F0")
	s.op("MOVD scaling_bfloat16(R0), R11")
	s.op("CBNZ R11, bfloat16")
	s.word(neonFCVTL, 0, 0, 0, "FCVTL")
	s.op("B minimum")
	s.label("bfloat16")
	s.word(neonUXTLH, 0, 0, 0, "UXTL")
	s.op("VSHL $16, V0.S4, V0.S4")
	s.label("minimum")
	s.op("VMOV V7.B16, V2.B16")
	s.op("CBZ R3, second")
	s.op("ADD R3, R10")
	s.op("FMOVD (R10), F2")
	s.word(neonFCVTL, 2, 2, 0, "FCVTL")
	s.word(neonFNEG, 2, 2, 0, "FNEG")
	s.label("second")
	s.op("ADD R8, R2, R12")
	s.op("ADD R5, R12, R13")
	s.op("ADD R4, R12")
	s.op("MOVD scaling_groups(R0), R7")
	scaleGroupNEON(s)
	s.op("SUB $1, R7")
	s.op("CBNZ R7, group")
	s.op("ADD $4, R8")
	s.op("CMP $32, R8")
	s.op("BNE vector")
	s.op("MOVD scaling_groups(R0), R7")
	s.op("ADD R7<<8, R1")
	s.op("MOVD scaling_step(R0), R7")
	s.op("ADD R7, R2")
	s.op("SUB $1, R6")
	s.op("CBNZ R6, tile")
	s.op("RET")
}

// scaleGroupNEON writes the scales of four columns of a group: d and -m as they are, or multiplied by s and n.
func scaleGroupNEON(s *source) {
	s.label("group")
	s.op("CBZ R4, same")
	s.op("FMOVS (R12), F4")
	s.word(neonSXTLB, 4, 4, 0, "SXTL")
	s.word(neonSXTLH, 4, 4, 0, "SXTL")
	s.word(neonSCVTF, 4, 4, 0, "SCVTF")
	s.word(neonFMUL, 4, 4, 0, "FMUL")
	s.op("FMOVQ F4, (R9)")
	s.op("ADD $32, R12")
	s.op("CBZ R5, sameMinimum")
	s.op("FMOVS (R13), F4")
	s.word(neonUXTLB, 4, 4, 0, "UXTL")
	s.word(neonUXTLH, 4, 4, 0, "UXTL")
	s.word(neonSCVTF, 4, 4, 0, "SCVTF")
	s.word(neonFMUL, 4, 4, 2, "FMUL")
	s.op("FMOVQ F4, 128(R9)")
	s.op("ADD $32, R13")
	s.op("B stored")
	s.label("same")
	s.op("FMOVQ F0, (R9)")
	s.label("sameMinimum")
	s.op("FMOVQ F2, 128(R9)")
	s.label("stored")
	s.op("ADD $256, R9")
}

// codesNEON writes kernels for codes of so many bits, as codesAVX2 does. Codes of 4 and 5 bits are looked up as bytes.
//
// Registers: R0 the argument; R1 the codes, R2 the fifth bits, R3 the scales; R4 a column of A, R5 from a row of it to
// the next; R6 the destination, R7 from a row of it to the next; R8, R9 and R10 the lines, groups and tiles left; R11
// how many fifth bits are used; R12 to R14 places.
//
// Vectors: sums from 0 on; 16 to 19 elements of A and numbers in the making; 20 and 21 the table, as bytes; 22 and 23
// masks; 24 the fifth bits that are used.
type codesNEON struct{ bits, rows int }

func (q codesNEON) name() string {
	if q.rows == 0 {
		return fmt.Sprintf("dequantize%dNEON", q.bits)
	}
	return fmt.Sprintf("multiply%dNEON_%d", q.bits, q.rows)
}

func (q codesNEON) write(s *source) {
	q.begin(s)
	lines := 8
	if q.bits == 8 {
		lines = 4
	}
	s.label("tile")
	s.op("MOVD coded_groups(R0), R9")
	s.label("group")
	s.op("MOVD $0, R11")
	s.op("MOVD coded_lines(R0), R8")
	s.label("line")
	q.line(s, lines)
	s.op("ADD $8, R11")
	s.op("ADD $128, R1")
	s.op("SUB $1, R8")
	s.op("CBNZ R8, line")
	s.op("ADD $256, R3")
	s.op("ADD $128, R2")
	s.op("SUB $1, R9")
	s.op("CBNZ R9, group")
	for i, field := range []string{"step", "fifthStep"} {
		s.op("MOVD coded_%s(R0), R12", field)
		s.op("ADD R12, R%d", i+1)
	}
	s.op("SUB $1, R10")
	s.op("CBNZ R10, tile")
	if q.rows > 0 {
		q.store(s)
	}
	s.op("RET")
}

// begin loads the arguments, and sets the sums.
func (q codesNEON) begin(s *source) {
	s.begin(q.name(), 0)
	s.op("MOVD t+0(FP), R0")
	for i, field := range []string{"codes", "fifths", "scales", "a", "aRow", "c", "cRow"} {
		s.op("MOVD coded_%s(R0), R%d", field, i+1)
	}
	s.op("MOVD coded_tiles(R0), R10")
	if q.bits < 8 {
		s.op("MOVD coded_small(R0), R12")
		s.op("VLD1 (R12), [V20.B16, V21.B16]")
		for i, mask := range []int{15, 16} {
			s.op("MOVD $%d, R12", mask)
			s.op("VDUP R12, V%d.S4", 22+i)
		}
	}
	if q.rows > 0 {
		s.op("MOVD coded_mode(R0), R12")
		s.op("CMP $const_resume, R12")
		s.op("BNE zero")
		q.eachSum(s, func(list, at string) { s.op("VLD1.P 64(%s), %s", at, list) })
		s.op("B tile")
		s.label("zero")
		for i := range 8 * q.rows {
			s.op("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
		}
	}
}

// line goes through the rows of a line.
func (q codesNEON) line(s *source, lines int) {
	for k := range lines {
		for r := range q.rows {
			s.op("ADD $%d, R4, R12", 4*k)
			if r > 0 {
				s.op("ADD R5, R12")
			}
			s.op("VLD1R (R12), [V%d.S4]", 16+r)
		}
		if q.bits == 5 {
			s.op("SUB $%d, R11, R12", 4-k) // fifth bits go to bit 4
			s.op("NEG R12, R12")
			s.op("VDUP R12, V24.S4")
		}
		for v := range 8 {
			q.number(s, k, v)
			if q.rows == 0 {
				s.op("FMOVQ F18, %d(R6)", 128*k+16*v)
			}
			for r := range q.rows {
				s.op("VFMLA V18.S4, V%d.S4, V%d.S4", 16+r, 8*r+v)
			}
		}
	}
	if q.rows == 0 {
		s.op("ADD $%d, R6", 128*lines)
	} else {
		s.op("ADD $%d, R4", 4*lines)
	}
}

// store adds the sums to C, or stores them there.
func (q codesNEON) store(s *source) {
	s.op("MOVD coded_mode(R0), R12")
	s.op("CMP $const_added, R12")
	s.op("BNE store")
	for r := range q.rows {
		s.op("MOVD R6, R12")
		if r > 0 {
			s.op("ADD R7, R12")
		}
		for v := range 8 {
			s.op("FMOVQ %d(R12), F18", 16*v)
			s.word(neonFADD, 8*r+v, 18, 8*r+v, "FADD")
		}
	}
	s.label("store")
	q.eachSum(s, func(list, at string) { s.op("VST1.P %s, 64(%s)", list, at) })
}

// number makes V18 the numbers of four columns in row k of a line.
func (q codesNEON) number(s *source, k, v int) {
	s.op("FMOVQ %d(R1), F18", 16*v)
	if shift := 8*(k%4) + 4*(k/4); q.bits < 8 && shift > 0 {
		s.op("VUSHR $%d, V18.S4, V18.S4", shift)
	}
	if q.bits < 8 {
		s.op("VAND V22.B16, V18.B16, V18.B16")
	}
	switch q.bits {
	case 4:
		s.op("VTBL V18.B16, [V20.B16], V18.B16")
	case 5:
		s.op("FMOVQ %d(R2), F19", 16*v)
		s.word(0x6ea04400, 19, 19, 24, "USHL") // to the right where the number is negative
		s.op("VAND V23.B16, V19.B16, V19.B16")
		s.op("VORR V19.B16, V18.B16, V18.B16")
		s.op("VTBL V18.B16, [V20.B16, V21.B16], V18.B16")
	}
	shift := 24
	if q.bits == 8 {
		shift -= 8 * k
	}
	if shift > 0 {
		s.op("VSHL $%d, V18.S4, V18.S4", shift)
	}
	s.word(neonSSHR, 18, 18, 0, "SSHR $24,")
	s.word(neonSCVTF, 18, 18, 0, "SCVTF")
	s.op("FMOVQ %d(R3), F19", 16*v)
	s.word(neonFMUL, 18, 18, 19, "FMUL")
	s.op("FMOVQ %d(R3), F19", 128+16*v)
	s.word(neonFADD, 18, 18, 19, "FADD")
}

// eachSum goes through the sums and their places in C, four vectors at a time.
func (q codesNEON) eachSum(s *source, f func(list, at string)) {
	for r := range q.rows {
		s.op("MOVD R6, R12")
		if r > 0 {
			s.op("ADD R7, R12")
		}
		f(neonVectors(8*r), "R12")
		f(neonVectors(8*r+4), "R12")
	}
}
