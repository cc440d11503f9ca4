package main

// The vectors of the wide kernels, by rows: as many as there are registers for. With AVX2 they are those of a panel.
var (
	wideAVX512 = []int{2: 8, 3: 8, 4: 4, 5: 4, 6: 4}
	wideAVX2   = []int{1: 4, 2: 4}
)

// wide writes a kernel of one tile of several vectors, all of which are there. It goes through wide rows of B once,
// where others would come back for each panel: memory likes that better.
//
// Registers are those of a tile kernel.
func (m amd64) wide(s *source, rows, vectors int) (name string) {
	m.masks = false // all columns are there
	name = m.tileName(rows, vectors, wide)
	s.begin(name, 0)
	s.op("MOVQ t+0(FP), AX")
	s.op("MOVQ tile_c(AX), DX")
	s.op("MOVQ tile_b(AX), DI")
	s.op("MOVQ tile_aRow(AX), R8")
	s.op("LEAQ (R8)(R8*2), R9")
	s.op("LEAQ (R8)(R8*4), R10")
	s.op("MOVQ tile_aCol(AX), R11")
	s.op("MOVQ tile_bRow(AX), R12")
	s.op("MOVQ tile_ahead(AX), R13")
	m.initial(s, rows, vectors)
	s.op("MOVQ tile_a(AX), CX")
	s.op("MOVQ tile_k(AX), BX")
	s.op("PCALIGN $32")
	s.label("column")
	a, b := rows*vectors, rows*vectors+rows
	for r := range rows {
		s.op("VBROADCASTSS %s, %s", row(r), m.reg(a+r))
	}
	for v := range vectors {
		s.op("VMOVUPS %d(DI), %s", v*m.bytes, m.reg(b+v%2))
		if v*m.bytes%64 == 0 {
			s.op("PREFETCHT0 %d(DI)(R13*1)", v*m.bytes)
		}
		for r := range rows {
			s.op("VFMADD231PS %s, %s, %s", m.reg(b+v%2), m.reg(a+r), m.accumulator(r, vectors, v))
		}
	}
	s.op("ADDQ R12, DI")
	s.op("ADDQ R11, CX")
	s.op("DECQ BX")
	s.op("JNZ column")
	m.final(s, rows, vectors)
	s.op("VZEROUPPER")
	s.op("RET")
	return name
}

// wides writes the wide kernels of an instruction set.
func (m amd64) wides(s *source, vectors []int) {
	family(s, "wide"+m.name, byRows, len(vectors)-1, func(rows int) string {
		if v := vectors[rows]; v > 0 {
			return m.wide(s, rows, v)
		}
		return ""
	})
}
