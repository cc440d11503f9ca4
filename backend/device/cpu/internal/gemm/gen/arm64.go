package main

import "fmt"

// neonRows is the height of the largest tile of NEON; all are 16 columns wide.
const neonRows = 6

func neonName(rows int) string { return fmt.Sprintf("tileNEON_%dx16", rows) }

// neon writes the kernels for arm64.
func neon() string {
	s := newSource()
	names := make([]string, 1, neonRows+1)
	for r := 1; r <= neonRows; r++ {
		neonTile(s, r)
		names = append(names, neonName(r))
	}
	s.chooseNEON("fullNEON", byRows, names)
	return s.String()
}

// chooseNEON writes a function that goes on as one of the kernels.
func (s *source) chooseNEON(name string, field [2]string, kernels []string) {
	s.choose(name, field, kernels,
		"MOVD ARGUMENT, R0", "MOVD FIELD(R0), R1", "MOVD $TABLE, R2", "MOVD (R2)(R1<<3), R2", "JMP (R2)")
}

// neonTile writes a kernel.
//
// Registers: R0 the argument; R1, R2 and R3 the tile's parts of A, B and C; R4 and R5 a row and a column of A; R6 a row
// of B; R7 a row of C; R8 the number of columns left; R9 the number of tiles left; R10 to R15 the rows of A in a
// column, and also those of C; R16 a row of B; V0 to V23 the tile, V24 to V27 a row of B, V28 and V29 elements of A.
func neonTile(s *source, rows int) {
	s.begin(neonName(rows), 0)
	s.op("MOVD t+0(FP), R0")
	for i, field := range []string{"a", "b", "c", "aRow", "aCol", "bRow", "cRow"} {
		s.op("MOVD tile_%s(R0), R%d", field, i+1)
	}
	s.op("MOVD tile_count(R0), R9")
	s.label("next")
	s.op("MOVD tile_mode(R0), R8")
	s.op("CMP $const_resume, R8")
	s.op("BNE zero")
	neonPointers(s, rows, "R3", "R7")
	for r := range rows {
		s.op("VLD1 (R%d), %s", 10+r, neonVectors(4*r))
	}
	s.op("B ready")
	s.label("zero")
	for i := range 4 * rows {
		s.op("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	s.label("ready")
	neonPointers(s, rows, "R1", "R4")
	s.op("MOVD R2, R16")
	s.op("MOVD tile_k(R0), R8")
	s.label("column")
	s.op("VLD1 (R16), %s", neonVectors(24))
	s.op("ADD R6, R16")
	for r := range rows {
		a := 28 + r%2
		s.op("VLD1R (R%d), [V%d.S4]", 10+r, a)
		s.op("ADD R5, R%d", 10+r)
		for v := range 4 {
			s.op("VFMLA V%d.S4, V%d.S4, V%d.S4", a, 24+v, 4*r+v)
		}
	}
	s.op("SUB $1, R8")
	s.op("CBNZ R8, column")
	neonFinal(s, rows)
	for i, field := range []string{"aStep", "bStep", "cStep"} {
		s.op("MOVD tile_%s(R0), R8", field)
		s.op("ADD R8, R%d", i+1)
	}
	s.op("SUB $1, R9")
	s.op("CBNZ R9, next")
	s.op("RET")
}

// neonFinal adds the accumulators to C, or stores them there. The assembler knows no addition of vectors: 1*c + sum has
// the same bits.
func neonFinal(s *source, rows int) {
	neonPointers(s, rows, "R3", "R7")
	s.op("MOVD tile_mode(R0), R8")
	s.op("CMP $const_added, R8")
	s.op("BNE store")
	s.op("MOVD $0x3f800000, R8") // 1
	s.op("VDUP R8, V28.S4")
	for r := range rows {
		s.op("VLD1 (R%d), %s", 10+r, neonVectors(24))
		for v := range 4 {
			s.op("VFMLA V28.S4, V%d.S4, V%d.S4", 24+v, 4*r+v)
		}
	}
	s.label("store")
	for r := range rows {
		s.op("VST1 %s, (R%d)", neonVectors(4*r), 10+r)
	}
}

// neonPointers sets R10 and those that follow to rows.
func neonPointers(s *source, rows int, first, step string) {
	s.op("MOVD %s, R10", first)
	for r := 1; r < rows; r++ {
		s.op("ADD %s, R%d, R%d", step, 9+r, 10+r)
	}
}

// neonVectors is a list of 4 registers.
func neonVectors(first int) string {
	return fmt.Sprintf("[V%d.S4, V%d.S4, V%d.S4, V%d.S4]", first, first+1, first+2, first+3)
}
