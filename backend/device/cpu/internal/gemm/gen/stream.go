package main

const (
	streamRows    = 14 // most rows of B of a stream kernel
	streamColumns = 16 // that it computes at once
)

// stream writes a kernel for one row of A that reads so many rows of B side by side, from their first column to the
// last: each row with an instruction of its own, by which the processor tells them apart and prefetches what follows.
// It adds their products to C and goes on with as many rows below.
//
// Registers: AX the argument; DX the place in C; CX and R15 that in B, and 7 rows below; R8, R9, R10 1, 3 and 5 rows of
// B; DI the first of them; R12 the size of all; SI the place in A; R11 an element of A; BX the number of tiles left.
func (m amd64) stream(s *source, rows int) (name string) {
	vectors := 4 * streamColumns / m.bytes
	name = m.tileName(rows, vectors, stream)
	s.begin(name, 0)
	s.op("MOVQ t+0(FP), AX")
	s.op("MOVQ tile_a(AX), SI")
	s.op("MOVQ tile_b(AX), DI")
	s.op("MOVQ tile_aCol(AX), R11")
	s.op("MOVQ tile_bRow(AX), R8")
	s.op("LEAQ (R8)(R8*2), R9")
	s.op("LEAQ (R8)(R8*4), R10")
	s.op("MOVQ tile_bStep(AX), R12")
	s.label("group")
	s.op("MOVQ DI, CX")
	s.op("LEAQ (CX)(R9*2), R15")
	s.op("ADDQ R8, R15")
	for r := range rows {
		s.op("VBROADCASTSS (SI), %s", m.reg(vectors+r))
		s.op("ADDQ R11, SI")
	}
	s.op("MOVQ tile_c(AX), DX")
	s.op("MOVQ tile_count(AX), BX")
	s.op("PCALIGN $32")
	s.label("columns")
	for v := range vectors {
		s.op("VMOVUPS %d(DX), %s", v*m.bytes, m.reg(v))
	}
	for r := range rows {
		for v := range vectors {
			s.op("VFMADD231PS %d%s, %s, %s", v*m.bytes, row(r), m.reg(vectors+r), m.reg(v))
		}
	}
	for v := range vectors {
		s.op("VMOVUPS %s, %d(DX)", m.reg(v), v*m.bytes)
	}
	for _, place := range []string{"DX", "CX", "R15"} {
		s.op("ADDQ $%d, %s", 4*streamColumns, place)
	}
	s.op("DECQ BX")
	s.op("JNZ columns")
	s.op("ADDQ R12, DI")
	s.op("DECQ tile_k(AX)")
	s.op("JNZ group")
	s.op("VZEROUPPER")
	s.op("RET")
	return name
}
