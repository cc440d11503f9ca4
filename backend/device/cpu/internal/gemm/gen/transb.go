package main

const (
	transBColumns = 16 // of a tile, and rows of B of a round
	keptRows      = 8  // of A: kernels of fewer are never followed by others that need the copy
)

// transB writes a kernel of tiles of 16 columns, which lie together in B, for an A that is packed. It transposes 16
// rows of B at once, so k is a multiple of 16.
//
// Memory is prefetched in two stages: what comes ahead of a tile in its order, into L2, and the next lines of the
// columns into the first.
//
// Registers: AX the argument; CX a column of A; DI the place in the first column of B, and R15 what is 7 columns on; R9
// to R12 1, 3, 5 and 7 columns; R13 what is prefetched into L2, and R8 the step to what comes with the next rows; DX
// rows of the copy, and SI the step to the next; BX the number of rounds left. C, B and the copy of the next tile are
// on the stack.
func (m amd64) transB(s *source, rows int) (name string) {
	m.masks = false // all columns are there
	name = m.tileName(rows, 1, transB)
	s.begin(name, 24)
	s.op("MOVQ t+0(FP), AX")
	s.op("MOVQ tile_c(AX), DX")
	s.op("MOVQ tile_b(AX), DI")
	s.op("MOVQ DI, b-16(SP)")
	s.op("MOVQ tile_keep(AX), SI")
	s.op("MOVQ SI, keep-24(SP)")
	s.op("MOVQ tile_bRow(AX), R9")
	s.op("LEAQ (R9)(R9*2), R10")
	s.op("LEAQ (R9)(R9*4), R11")
	s.op("LEAQ (R9)(R10*2), R12")
	s.op("MOVQ tile_aheadStep(AX), R8")
	s.op("MOVQ tile_keepRows(AX), SI")
	s.label("next")
	m.fetchNext(s, rows, 1)
	m.initial(s, rows, 1)
	s.op("MOVQ DX, c-8(SP)")
	s.op("MOVQ tile_a(AX), CX")
	s.op("MOVQ b-16(SP), DI")
	s.op("LEAQ (DI)(R12*1), R15")
	s.op("MOVQ tile_ahead(AX), R13")
	s.op("ADDQ DI, R13")
	s.op("MOVQ keep-24(SP), DX")
	s.op("MOVQ tile_k(AX), BX")
	s.op("SHRQ $4, BX")
	s.op("PCALIGN $32")
	s.label("round")
	m.transBRound(s, rows)
	s.op("DECQ BX")
	s.op("JNZ round")
	s.op("MOVQ c-8(SP), DX")
	m.final(s, rows, 1)
	s.op("ADDQ tile_cStep(AX), DX")
	s.op("MOVQ tile_bStep(AX), CX")
	s.op("ADDQ CX, b-16(SP)")
	s.op("MOVQ tile_keepStep(AX), CX")
	s.op("ADDQ CX, keep-24(SP)")
	s.op("DECQ tile_count(AX)")
	s.op("JNZ next")
	s.op("VZEROUPPER")
	s.op("RET")
	return name
}

// transBRound transposes 16 rows of B and adds their products with columns of A.
func (m amd64) transBRound(s *source, rows int) {
	columns := make([]int, transBColumns) // their registers
	for i := range columns {
		columns[i] = rows + i
		s.op("VMOVUPS %s, %s", number(i, "DI"), m.reg(columns[i]))
	}
	prefetched := 0
	prefetch := func() { // by and by: prefetches that follow one another wait together
		if i := prefetched / 2; prefetched%2 == 0 {
			s.op("PREFETCHT0 64%s", number(i, "DI"))
		} else {
			s.op("PREFETCHT2 %d(R13)", 64*i)
		}
		prefetched++
	}
	for k, b := range m.transposeSquare(s, columns, rows+transBColumns, prefetch) {
		if rows >= keptRows {
			s.op("VMOVUPS %s, %d(DX)", m.reg(b), panelBytes*k)
		}
		for r := range rows {
			s.op("VFMADD231PS.BCST %d(CX), %s, %s", 4*(rows*k+r), m.reg(b), m.accumulator(r, 1, 0))
		}
	}
	s.op("ADDQ $64, DI")
	s.op("ADDQ $64, R15")
	s.op("ADDQ R8, R13")
	s.op("ADDQ $%d, CX", 4*rows*transBColumns)
	if rows >= keptRows {
		s.op("ADDQ SI, DX")
	}
}

// transposeSquare transposes 16 x 16 numbers: from the registers of columns to those of rows, which it returns. free is
// one more; between is called after each of 32 pairs of instructions.
func (m amd64) transposeSquare(s *source, columns []int, free int, between func()) (rows [16]int) {
	at := append([]int(nil), columns...)
	// pair sets x and y to what two instructions make of them.
	pair := func(x, y int, first, second string) {
		s.op("%s %s, %s, %s", first, m.reg(at[y]), m.reg(at[x]), m.reg(free))
		s.op("%s %s, %s, %s", second, m.reg(at[y]), m.reg(at[x]), m.reg(at[x]))
		at[x], at[y], free = free, at[x], at[y]
		between()
	}
	for i := 0; i < 16; i += 4 { // 128-bit lane l of number i+n is columns i to i+3 of row 4l+n
		pair(i, i+1, "VUNPCKLPS", "VUNPCKHPS")
		pair(i+2, i+3, "VUNPCKLPS", "VUNPCKHPS")
		pair(i, i+2, "VUNPCKLPD", "VUNPCKHPD")
		pair(i+1, i+3, "VUNPCKLPD", "VUNPCKHPD")
		at[i+1], at[i+2] = at[i+2], at[i+1]
	}
	for n := range 4 { // and then the lanes are transposed
		for _, i := range []int{n, n + 8} {
			pair(i, i+4, "VSHUFF32X4 $0x44,", "VSHUFF32X4 $0xEE,")
		}
		for _, i := range []int{n, n + 4} {
			pair(i, i+8, "VSHUFF32X4 $0x88,", "VSHUFF32X4 $0xDD,")
		}
		rows[n], rows[4+n], rows[8+n], rows[12+n] = at[n], at[n+8], at[n+4], at[n+12]
	}
	return rows
}
