package main

import (
	"fmt"
	"strings"
)

// transposed writes a kernel that packs lines of so many numbers, which are lines apart while the lines lie side by
// side: 4 lines in a round, so k is a multiple of 4. The rounds prefetch what comes ahead of the numbers by turns,
// since the lines of the cache last for 4, and what is written after 1 KB.
//
// Registers: AX the argument; SI the first number of a line, and R15 what is 7 numbers below; R9 to R12 1, 3, 5 and 7
// numbers; DI a line of the destination; R8 and CX 1 and 3 of them; R13 the distance of what is prefetched, and R14
// what is; BX the rounds left.
func (m amd64) transposed(s *source, width int) (name string) {
	name = fmt.Sprintf("transpose%s_%d", m.name, width)
	s.begin(name, 0)
	packArguments(s)
	s.op("LEAQ (R8)(R8*2), CX")
	s.op("LEAQ (R9)(R9*2), R10")
	s.op("LEAQ (R9)(R9*4), R11")
	s.op("LEAQ (R9)(R10*2), R12")
	s.op("LEAQ (SI)(R12*1), R15")
	s.op("LEAQ (SI)(R13*1), R14")
	if m.masks {
		s.op("KMOVW packing_lanes(AX), K1")
	}
	s.op("SHRQ $2, BX")
	s.label("quad")
	s.op("TESTQ $3, BX")
	s.op("JNE soon")
	s.op("LEAQ (SI)(R13*1), R14")
	s.label("soon")
	each := (width + 3) / 4
	for i := range each {
		s.op("PREFETCHT1 %s", []string{"(R14)", "(R14)(R9*1)", "(R14)(R9*2)", "(R14)(R10*1)"}[i])
	}
	if each == 3 {
		s.op("ADDQ R10, R14")
	} else {
		s.op("LEAQ (R14)(R9*%d), R14", each)
	}
	for i := range (16*width + 63) / 64 {
		s.op("PREFETCHT0 %d(DI)", 1024+64*i)
	}
	m.transpose(s, 0, width, func(i int) string { return number(i, "SI") })
	for i, at := range []string{"(DI)", "(DI)(R8*1)", "(DI)(R8*2)", "(DI)(CX*1)"} {
		switch {
		case m.masks:
			s.op("VMOVUPS %s, K1, %s", m.reg(i), at)
		case width == 2*4:
			s.op("VMOVUPS Y%d, %s", i, at)
		case width > 4:
			s.op("VMOVUPS X%d, %s", i, at)
			s.op("VEXTRACTF128 $1, Y%d, X%d", i, i)
			storePart(s, i, width-4, 16, at)
		default:
			storePart(s, i, width, 0, at)
		}
	}
	s.op("ADDQ $16, SI")
	s.op("ADDQ $16, R15")
	s.op("LEAQ (DI)(R8*4), DI")
	s.op("DECQ BX")
	s.op("JNZ quad")
	packEnd(s)
	return name
}

// number is where a number of a line is, which begins at a register; R15 is what is 7 numbers on.
func number(i int, begin string) string {
	at := [...]string{
		"(BEGIN)", "(BEGIN)(R9*1)", "(BEGIN)(R9*2)", "(BEGIN)(R10*1)", "(BEGIN)(R9*4)", "(BEGIN)(R11*1)", "(BEGIN)(R10*2)",
		"(BEGIN)(R12*1)",
		"(BEGIN)(R9*8)", "(R15)(R9*2)", "(BEGIN)(R11*2)", "(R15)(R9*4)", "(BEGIN)(R10*4)", "(R15)(R10*2)", "(BEGIN)(R12*2)",
		"(R15)(R9*8)",
	}[i]
	return strings.Replace(at, "BEGIN", begin, 1)
}

// transpose transposes 4 lines of so many numbers, in the registers from first on, into the first 4 of them: first
// 128-bit lane l of register i is 4 lines of number 4l+i, and then each lane is transposed. Numbers that are not there
// become any value.
func (m amd64) transpose(s *source, first, width int, at func(number int) string) {
	insert := map[byte]string{'Z': "VINSERTF32X4", 'Y': "VINSERTF128"}[m.register]
	for i := range width {
		lane, r := i/4, first+i%4
		if lane == 0 {
			s.op("VMOVUPS %s, X%d", at(i), r)
		} else {
			s.op("%s $%d, %s, %s, %s", insert, lane, at(i), m.reg(r), m.reg(r))
		}
	}
	shuffle := func(name string, y, x, z int) {
		s.op("VUNPCK%s %s, %s, %s", name, m.reg(first+y), m.reg(first+x), m.reg(first+z))
	}
	shuffle("LPS", 1, 0, 4)
	shuffle("HPS", 1, 0, 5)
	shuffle("LPS", 3, 2, 6)
	shuffle("HPS", 3, 2, 7)
	shuffle("LPD", 6, 4, 0)
	shuffle("HPD", 6, 4, 1)
	shuffle("LPD", 7, 5, 2)
	shuffle("HPD", 7, 5, 3)
}

// storePart stores 1 to 4 numbers, so many bytes from an address.
func storePart(s *source, r, n, offset int, at string) {
	switch n {
	case 1:
		s.op("VMOVSS X%d, %d%s", r, offset, at)
	case 2, 3:
		s.op("VMOVLPS X%d, %d%s", r, offset, at)
	case 4:
		s.op("VMOVUPS X%d, %d%s", r, offset, at)
	}
	if n == 3 {
		s.op("VEXTRACTPS $2, X%d, %d%s", r, offset+8, at)
	}
}
