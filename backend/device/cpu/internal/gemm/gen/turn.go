package main

// turn writes a kernel of tiles of 16 columns, which lie together in B. It transposes 4 rows of B at once, so k is a
// multiple of 4.
//
// Memory is fetched in two stages: what comes ahead of a tile in its order, into the second cache, and the next lines of
// the columns into the first. A quad of rows fetches 4 lines each.
//
// Registers: AX the argument; CX and R15, R8 to R11 as in a tile kernel; DI the place in the first column of B; R13 what is
// fetched into the second cache; R14 the offsets of the columns, R12 one of them, SI 4 that are fetched; DX a row of the
// copy; BX the number of rows left. C, B and the copy of the next tile are on the stack.
func (m amd64) turn(s *source, rows int) {
	s.beginFrame(m.tileName(rows, 1, turn)+"(SB)", 24)
	s.op("MOVQ t+0(FP), AX")
	s.op("MOVQ tile_c(AX), DX")
	s.op("MOVQ tile_b(AX), DI")
	s.op("MOVQ DI, b-16(SP)")
	s.op("MOVQ tile_keep(AX), R12")
	s.op("MOVQ R12, keep-24(SP)")
	s.op("MOVQ tile_aRow(AX), R8")
	s.op("LEAQ (R8)(R8*2), R9")
	s.op("LEAQ (R8)(R8*4), R10")
	s.op("MOVQ tile_aCol(AX), R11")
	s.op("KMOVW tile_lanes(AX), K1")
	s.op("MOVQ tile_offset(AX), R14")
	s.label("next")
	m.initial(s, rows, 1)
	s.op("MOVQ DX, c-8(SP)")
	s.op("MOVQ tile_a(AX), CX")
	s.op("LEAQ (CX)(R9*2), R15")
	s.op("ADDQ R8, R15")
	s.op("MOVQ b-16(SP), DI")
	s.op("MOVQ tile_ahead(AX), R13")
	s.op("ADDQ DI, R13")
	s.op("MOVQ keep-24(SP), DX")
	s.op("MOVQ tile_k(AX), BX")
	s.op("SHRQ $2, BX")
	s.op("PCALIGN $32")
	s.label("quad")
	for i := range 4 {
		s.op("PREFETCHT2 %d(R13)", 64*i)
	}
	s.op("ADDQ tile_aheadStep(AX), R13")
	fetch(s, "DI", "R14", "SI", "R12", "T0", "64")
	m.turnQuad(s, rows)
	s.op("DECQ BX")
	s.op("JNZ quad")
	s.op("MOVQ c-8(SP), DX")
	m.final(s, rows, 1)
	s.op("ADDQ tile_cStep(AX), DX")
	s.op("MOVQ tile_bStep(AX), R12")
	s.op("ADDQ R12, b-16(SP)")
	s.op("MOVQ tile_keepStep(AX), R12")
	s.op("ADDQ R12, keep-24(SP)")
	s.op("DECQ tile_count(AX)")
	s.op("JNZ next")
	s.op("VZEROUPPER")
	s.op("RET")
}

// turnQuad turns 4 rows of B and adds their products with columns of A.
func (m amd64) turnQuad(s *source, rows int) {
	transposeQuad(s, "DI", "R14", "R12", 16)
	for line := range 4 {
		b := m.reg(16 + line)
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
