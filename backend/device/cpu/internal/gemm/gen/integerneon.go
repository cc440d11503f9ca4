package main

import "fmt"

// integerRowsNEON are the most rows of A of a kernel of NEON that multiplies integers.
const integerRowsNEON = 2

// The assembler does not know these instructions either.
const (
	neonSMULL  = 0x0e20c000 // of the low halves; of the high ones with neonHigh
	neonSMLAL  = 0x0e208000
	neonHigh   = 0x40000000
	neonSADALP = 0x4e606800
	neonCMTST  = 0x4e208c00
)

// integerNEON writes the kernels for products of integers, as integerAVX2 does; rows of A are rounded in Go.
//
// Sums of products are 16 bits, which holds those of a group where codes are below 64: there are 4 dwords in the groups
// of those that are not below 32. Larger ones are multiplied as signed numbers, and 2 dwords fit.
func integerNEON() string {
	s := newSource()
	s.WriteString(lowBytes)
	fmt.Fprintf(s, "\nDATA bits<>+0(SB)/8, $0x0804020108040201\nDATA bits<>+8(SB)/8, $0x0804020108040201\n"+
		"DATA bits<>+16(SB)/8, $0x8040201080402010\nDATA bits<>+24(SB)/8, $0x8040201080402010\n"+
		"GLOBL bits<>(SB), RODATA, $32\n")
	var unpack, sum []string
	for _, bits := range codeBits {
		unpack = append(unpack, unpackNEON(s, bits))
	}
	for class := range 4 {
		for _, groups := range []int{1, 2} {
			for rows := range integerRowsNEON {
				k := sumsNEON{rows + 1, groups, class == 3}
				if class == 0 || class == 3 {
					k.write(s)
				}
				sum = append(sum, k.name())
			}
		}
	}
	s.chooseNEON("unpackNEON", byUnpacking, unpack)
	s.chooseNEON("sumNEON", bySumming, sum)
	return s.String()
}

// unpackNEON writes a kernel that stores the unsigned codes of some tiles.
//
// Registers: R0 the argument; R1 the codes, R2 the fifth bits and R3 the destination; R4 and R5 the records and tiles
// left. Vectors: 0 to 3 codes in the making, 8 to 15 fifth bits; 16 the mask of nibbles, 17 the table or the bias; 18
// to 21 are 16, the masks of bytes, and the low bytes.
func unpackNEON(s *source, bits int) string {
	name := fmt.Sprintf("unpack%dNEON", bits)
	s.begin(name, 0)
	s.op("MOVD t+0(FP), R0")
	for i, field := range []string{"codes", "fifths", "dst"} {
		s.op("MOVD unpacking_%s(R0), R%d", field, i+1)
	}
	s.op("MOVD unpacking_tiles(R0), R5")
	s.op("VMOVI $15, V16.B16")
	switch bits {
	case 4:
		s.op("MOVD unpacking_table(R0), R6")
		s.op("VLD1 (R6), [V17.B16]")
	case 5:
		s.op("VMOVI $16, V18.B16")
		s.op("MOVD $bits<>(SB), R6")
		s.op("VLD1 (R6), [V19.B16, V20.B16]")
		s.op("MOVD $lowBytes<>(SB), R6")
		s.op("VLD1 (R6), [V21.B16]")
	case 8:
		s.op("MOVD unpacking_bias(R0), R6")
		s.op("VDUP R6, V17.B16")
	}
	s.label("tile")
	s.op("MOVD unpacking_count(R0), R4")
	s.label("record")
	if bits == 8 {
		for range 16 {
			s.op("VLD1.P 64(R1), %s", neonBytes(0))
			for v := range 4 {
				s.op("VADD V17.B16, V%d.B16, V%d.B16", v, v)
			}
			s.op("VST1.P %s, 64(R3)", neonBytes(0))
		}
	} else {
		nibblesNEON(s, bits)
	}
	s.op("SUB $1, R4")
	s.op("CBNZ R4, record")
	for i, field := range []string{"step", "fifthStep"} {
		s.op("MOVD unpacking_%s(R0), R6", field)
		s.op("ADD R6, R%d", i+1)
	}
	s.op("SUB $1, R5")
	s.op("CBNZ R5, tile")
	s.op("RET")
	return name
}

// neonBytes is a list of four vectors.
func neonBytes(first int) string {
	return fmt.Sprintf("[V%d.B16, V%d.B16, V%d.B16, V%d.B16]", first, first+1, first+2, first+3)
}

// nibblesNEON writes a record of codes of 4 or 5 bits.
func nibblesNEON(s *source, bits int) {
	if bits == 5 {
		s.op("VLD1.P 64(R2), %s", neonBytes(8))
		s.op("VLD1.P 64(R2), %s", neonBytes(12))
	}
	for range 4 { // lines
		for v := range 8 {
			s.op("FMOVQ %d(R1), F1", 16*v)
			s.op("VAND V16.B16, V1.B16, V0.B16")
			s.op("VUSHR $4, V1.B16, V1.B16")
			if bits == 4 {
				s.op("VTBL V0.B16, [V17.B16], V0.B16")
				s.op("VTBL V1.B16, [V17.B16], V1.B16")
			} else {
				s.op("VTBL V21.B16, [V%d.B16], V2.B16", 8+v)
				s.op("VUSHR $8, V%d.S4, V%d.S4", 8+v, 8+v)
				for i := range 2 {
					s.word(neonCMTST, 3, 2, 19+i, "CMTST")
					s.op("VAND V18.B16, V3.B16, V3.B16")
					s.op("VORR V3.B16, V%d.B16, V%d.B16", i, i)
				}
			}
			s.op("FMOVQ F0, %d(R3)", 16*v)
			s.op("FMOVQ F1, %d(R3)", 128+16*v)
		}
		s.op("ADD $128, R1")
		s.op("ADD $256, R3")
	}
}

// sumsNEON writes a kernel that multiplies records of so many rows of A by unsigned codes, with so many groups in a
// record. It goes through the columns four times, 8 at once.
//
// Registers: R0 the argument; R1 the codes and R2 the scales; R3 a record of the first row and R4 a row of them; R5 the
// destination and R6 a row of it; R7 the records left; R8 whether something is subtracted; R9 the first byte of the
// columns; R10 a place.
//
// Vectors: sums from 0 on; 4 to 11 those of integers, of 2 columns each, 12 to 19 those of 16 bits; 20 codes or scales,
// 21 and 22 elements of A, 23 and 24 what is in the making; 25 the sign of a byte.
type sumsNEON struct {
	rows, groups int
	signed       bool
}

func (k sumsNEON) name() string {
	if k.signed {
		return fmt.Sprintf("signed%dNEON_%d", k.groups, k.rows)
	}
	return fmt.Sprintf("sum%dNEON_%d", k.groups, k.rows)
}

func (k sumsNEON) write(s *source) {
	s.begin(k.name(), 0)
	s.op("MOVD t+0(FP), R0")
	for i, field := range []string{"aRow", "c", "cRow", "count", "min"} {
		s.op("MOVD summing_%s(R0), R%d", field, i+4)
	}
	s.op("MOVD ZR, R9")
	s.op("VMOVI $128, V25.B16")
	s.label("columns")
	for i, field := range []string{"codes", "scales", "a"} {
		s.op("MOVD summing_%s(R0), R%d", field, i+1)
	}
	s.op("MOVD summing_c(R0), R5")
	s.op("MOVD summing_count(R0), R7")
	for _, r := range []int{1, 2, 5} {
		s.op("ADD R9, R%d", r)
	}
	for i := range 2 * k.rows {
		s.op("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	s.label("record")
	for g := range k.groups {
		k.group(s, g)
	}
	s.op("ADD $64, R3")
	s.op("ADD $1024, R1")
	s.op("SUB $1, R7")
	s.op("CBNZ R7, record")
	each := func(f func(i int, at string)) {
		for r := range k.rows {
			s.op("MOVD R5, R10")
			if r > 0 {
				s.op("ADD R6, R10")
			}
			for v := range 2 {
				f(2*r+v, fmt.Sprintf("%d(R10)", 16*v))
			}
		}
	}
	s.op("MOVD summing_mode(R0), R10")
	s.op("CMP $const_added, R10")
	s.op("BNE store")
	each(func(i int, at string) {
		s.op("FMOVQ %s, F20", at)
		s.word(neonFADD, i, 20, i, "FADD")
	})
	s.label("store")
	each(func(i int, at string) { s.op("FMOVQ F%d, %s", i, at) })
	s.op("ADD $32, R9")
	s.op("CMP $128, R9")
	s.op("BNE columns")
	s.op("RET")
}

// field loads the field of the record of a row, at an offset, in all lanes.
func (k sumsNEON) field(s *source, field string, offset, row, to int) {
	s.op("ADD $(record_%s+%d), R3, R10", field, offset)
	if row > 0 {
		s.op("ADD R4, R10")
	}
	s.op("VLD1R (R10), [V%d.S4]", to)
}

// group writes a group of a record.
func (k sumsNEON) group(s *source, group int) {
	n := 8 / k.groups
	for i := range 4 * k.rows {
		s.op("VEOR V%d.B16, V%d.B16, V%d.B16", 4+i, 4+i, 4+i)
	}
	for i := range n {
		for r := range k.rows {
			k.field(s, "q", 4*(group*n+i), r, 21+r)
		}
		k.products(s, i, group*n+i)
		if k.signed && i%2 == 1 || i == n-1 {
			for j := range 4 * k.rows {
				s.word(neonSADALP, 4+j, 12+j, 0, "SADALP")
			}
		}
	}
	for r := range k.rows {
		if !k.signed {
			k.field(s, "start", 4*group, r, 22)
		}
		k.field(s, "a", 0, r, 21)
		for v := range 2 {
			first := 4 + 4*r + 2*v
			s.op("VADDP V%d.S4, V%d.S4, V23.S4", first+1, first)
			if !k.signed {
				s.op("VADD V22.S4, V23.S4, V23.S4")
			}
			s.word(neonSCVTF, 23, 23, 0, "SCVTF")
			s.op("FMOVQ %d(R2), F20", 16*v)
			s.word(neonFMUL, 20, 20, 21, "FMUL")
			s.op("VFMLA V23.S4, V20.S4, V%d.S4", 2*r+v)
		}
	}
	s.op("CBZ R8, same%d", group)
	for r := range k.rows {
		k.field(s, "sum", 4*group, r, 21)
		for v := range 2 {
			s.op("FMOVQ %d(R2), F20", 128+16*v)
			s.op("VFMLA V21.S4, V20.S4, V%d.S4", 2*r+v)
		}
	}
	s.label(fmt.Sprintf("same%d", group))
	s.op("ADD $256, R2")
}

// products writes the products of a dword of each row, which are the first of a sum of 16 bits, or are added.
func (k sumsNEON) products(s *source, i, dword int) {
	multiply, name := neonSMLAL, "SMLAL"
	if i == 0 || k.signed && i%2 == 0 {
		multiply, name = neonSMULL, "SMULL"
	}
	for v := range 2 {
		s.op("FMOVQ %d(R1), F20", 128*dword+16*v)
		if k.signed {
			s.op("VEOR V25.B16, V20.B16, V20.B16")
		}
		for r := range k.rows {
			to := 12 + 4*r + 2*v
			s.word(multiply, to, 20, 21+r, name)
			s.word(multiply|neonHigh, to+1, 20, 21+r, name+"2")
		}
	}
}
