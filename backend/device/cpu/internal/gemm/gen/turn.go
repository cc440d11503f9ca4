package main

// turn writes a kernel of one tile of 16 columns, which lie together in B. It transposes 4 rows of B at once, so k is a
// multiple of 4.
//
// Registers: AX the argument; CX and R15, R8 to R11 and R13 as in a tile kernel; DI the place in the first column of B;
// R14 the offsets of the columns, R12 one of them, SI 4 that are fetched; DX a row of the copy; BX the number of
// rows left.
func (m amd64) turn(s *source, rows int) {
	s.begin(m.tileName(rows, 1, turn) + "(SB)")
	s.op("MOVQ t+0(FP), AX")
	s.op("MOVQ tile_a(AX), SI")
	s.op("MOVQ tile_c(AX), DX")
	s.op("MOVQ tile_aRow(AX), R8")
	s.op("LEAQ (R8)(R8*2), R9")
	s.op("LEAQ (R8)(R8*4), R10")
	s.op("MOVQ tile_aCol(AX), R11")
	s.op("MOVQ tile_ahead(AX), R13")
	s.op("KMOVW tile_lanes(AX), K1")
	m.initial(s, rows, 1)
	s.op("MOVQ SI, CX")
	s.op("LEAQ (SI)(R9*2), R15")
	s.op("ADDQ R8, R15")
	s.op("MOVQ tile_b(AX), DI")
	s.op("MOVQ tile_offset(AX), R14")
	s.op("MOVQ tile_keep(AX), DX")
	s.op("MOVQ tile_k(AX), BX")
	s.op("SHRQ $2, BX")
	s.op("PCALIGN $32")
	s.label("quad")
	fetch(s, "DI", "R14", "SI", "R12", "T0")
	m.turnQuad(s, rows)
	s.op("DECQ BX")
	s.op("JNZ quad")
	s.op("MOVQ tile_c(AX), DX")
	m.final(s, rows, 1)
	s.op("VZEROUPPER")
	s.op("RET")
}

// turnQuad turns 4 rows of B and adds their products with columns of A.
func (m amd64) turnQuad(s *source, rows int) {
	transposeQuad(s, "DI", "R14", "R12", 16)
	for line := range 4 {
		b := m.reg(24 + line)
		s.op("VMOVUPS %s, (DX)", b)
		s.op("ADDQ tile_bRow(AX), DX")
		for r := range rows {
			a := m.reg(m.a[r%2])
			s.op("VBROADCASTSS %s, %s", row(r), a)
			s.op("VFMADD231PS %s, %s, %s", b, a, m.accumulator(r, 1, 0))
		}
		s.op("ADDQ R11, CX")
		if rows > 7 {
			s.op("ADDQ R11, R15")
		}
	}
	s.op("ADDQ $16, DI")
}
