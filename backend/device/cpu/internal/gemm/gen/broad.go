package main

import "fmt"

const (
	broadRows    = 9 // of the largest tile
	broadVectors = 3
	broadRound   = 4 // columns of A, and rows of B, between two jumps
	panelBytes   = 128
)

// broad writes a kernel of tiles of 48 columns, for panels of B that are packed, and an A that is or the rows of which
// lie together: it loads fewer vectors for a multiply-add than kernels of 32 columns. Tiles begin with a panel and in
// the middle of one by turns.
//
// Registers: AX the argument; DX the tile's part of C; CX a column of A, and if that is not packed, R8 and R15 what is
// 3 and 6 rows below, and SI from a row to the next; DI a row of B, the first of the tile is on the stack; R9 and R10
// from its first vector to the others; R13, R11 and R12 from there to what is prefetched soon; R14 what is prefetched
// early; BX the number of columns left. On the stack are also the row of C that is prefetched next, how many are left,
// and how far ahead the next tile is prefetched: where C is added, its rows are read, and come in two stages; otherwise
// 0, which prefetches nothing more.
func (m amd64) broad(s *source, rows int, k kind) (name string) {
	m.masks = false // all columns are there
	name = m.tileName(rows, broadVectors, k)
	s.begin(name, 32)
	s.op("MOVQ t+0(FP), AX")
	s.op("MOVQ tile_c(AX), DX")
	s.op("MOVQ tile_b(AX), DI")
	s.op("MOVQ DI, b-8(SP)")
	s.op("MOVQ $64, R9")
	s.op("MOVQ tile_bStep(AX), R10")
	s.op("MOVQ tile_early(AX), R14")
	s.op("ADDQ DI, R14")
	s.op("MOVQ tile_aRow(AX), SI")
	s.op("MOVQ tile_ahead(AX), R13")
	s.op("LEAQ (R13)(R10*1), R12")
	s.op("MOVQ tile_mode(AX), BX")
	s.op("SHRQ $1, BX")
	s.op("IMULQ tile_cStep(AX), BX")
	s.op("MOVQ BX, ahead-32(SP)")
	s.label("next")
	s.op("LEAQ (R13)(R9*1), R11")
	m.initial(s, rows, broadVectors)
	m.firstColumn(s, k)
	s.op("MOVQ b-8(SP), DI")
	m.rounds(s, rows, k)
	s.op("MOVQ tile_k(AX), BX")
	s.op("ANDQ $3, BX")
	s.op("JEQ done")
	s.label("column")
	m.broadColumns(s, rows, 1, k)
	s.op("DECQ BX")
	s.op("JNZ column")
	s.label("done")
	m.final(s, rows, broadVectors)
	// From the beginning of a panel, vectors are 0, 64 and a panel away; from its middle 0, a panel less 64, and a panel.
	s.op("MOVQ b-8(SP), DI")
	s.op("ADDQ R9, DI")
	s.op("ADDQ R10, DI")
	s.op("MOVQ DI, b-8(SP)")
	s.op("NEGQ R9")
	s.op("ADDQ R10, R9")
	s.op("ADDQ tile_cStep(AX), DX")
	s.op("DECQ tile_count(AX)")
	s.op("JNZ next")
	s.op("VZEROUPPER")
	s.op("RET")
	return name
}

// rounds adds the products of all whole rounds of columns, and prefetches a row of C now and then. All rows at once
// would take the places of what is prefetched of B.
func (m amd64) rounds(s *source, rows int, k kind) {
	s.op("MOVQ DX, c-16(SP)")
	s.op("MOVQ tile_cRows(AX), BX")
	s.op("MOVQ BX, cRows-24(SP)")
	s.op("MOVQ tile_cFirst(AX), BX")
	s.op("TESTQ BX, BX")
	s.op("JEQ prefetch")
	s.label("round")
	m.broadColumns(s, rows, broadRound, k)
	s.op("DECQ BX")
	s.op("JNZ round")
	s.label("prefetch")
	s.op("DECQ cRows-24(SP)")
	s.op("JLT rest")
	s.op("MOVQ c-16(SP), BX")
	m.fetchRow(s, "PREFETCHT0")
	s.op("ADDQ ahead-32(SP), BX")
	m.fetchRow(s, "PREFETCHT1")
	s.op("MOVQ tile_cRow(AX), BX")
	s.op("ADDQ BX, c-16(SP)")
	s.op("MOVQ tile_cEach(AX), BX")
	s.op("JMP round")
	s.label("rest")
}

// fetchRow prefetches a row of a tile of C.
func (m amd64) fetchRow(s *source, instruction string) {
	for v := range broadVectors {
		s.op("%s %d(BX)", instruction, v*m.bytes)
	}
}

// firstColumn points at the first column of A.
func (m amd64) firstColumn(s *source, k kind) {
	s.op("MOVQ tile_a(AX), CX")
	if k == placed {
		s.op("LEAQ (CX)(SI*2), R8")
		s.op("ADDQ SI, R8")
		s.op("LEAQ (R8)(SI*2), R15")
		s.op("ADDQ SI, R15")
	}
}

// placedRow is the address of a row of A that is not packed.
func placedRow(i int) string {
	return [...]string{
		"(CX)", "(CX)(SI*1)", "(CX)(SI*2)", "(R8)", "(CX)(SI*4)", "(R8)(SI*2)", "(R15)", "(R8)(SI*4)", "(CX)(SI*8)",
	}[i]
}

// broadcasts reports whether a row of A is broadcast by the multiply-adds: an instruction less, and two loads more. Two
// of nine are, those whose address is one register.
func broadcasts(row int) bool { return row == 3 || row == 6 }

// broadColumns adds the products of so many columns of A and rows of B.
func (m amd64) broadColumns(s *source, rows, columns int, kind kind) {
	b, a := rows*broadVectors, rows*broadVectors+broadVectors
	at := []string{"(DI)", "(DI)(R9*1)", "(DI)(R10*1)"}
	soon := []string{"(DI)(R13*1)", "(DI)(R11*1)", "(DI)(R12*1)"}
	for k := range columns {
		for v := range broadVectors {
			s.op("VMOVUPS %d%s, %s", panelBytes*k, at[v], m.reg(b+v))
		}
		for r := range rows {
			x, number := m.reg(a+r%2), fmt.Sprintf("%d(CX)", 4*(rows*k+r))
			if kind == placed {
				number = fmt.Sprintf("%d%s", 4*k, placedRow(r))
			}
			if !broadcasts(r) {
				s.op("VBROADCASTSS %s, %s", number, x)
			}
			for v := range broadVectors {
				if broadcasts(r) {
					s.op("VFMADD231PS.BCST %s, %s, %s", number, m.reg(b+v), m.accumulator(r, broadVectors, v))
				} else {
					s.op("VFMADD231PS %s, %s, %s", m.reg(b+v), x, m.accumulator(r, broadVectors, v))
				}
			}
			for v := r; v < broadVectors; v += rows {
				s.op("PREFETCHT0 %d%s", panelBytes*k, soon[v])
			}
		}
		if k%2 == 1 { // often enough, and an instruction less for each column
			s.op("PREFETCHT2 (R14)")
			s.op("ADDQ tile_earlyStep(AX), R14")
		}
	}
	s.op("ADDQ $%d, DI", panelBytes*columns)
	m.nextColumns(s, rows, columns, kind)
}

// nextColumns goes on by so many columns of A.
func (m amd64) nextColumns(s *source, rows, columns int, k kind) {
	if k != placed {
		s.op("ADDQ $%d, CX", 4*rows*columns)
		return
	}
	for i, at := range []string{"CX", "R8", "R15"} {
		if rows > 3*i {
			s.op("ADDQ $%d, %s", 4*columns, at)
		}
	}
}
