package main

import "fmt"

// amd64 tells the tile kernels of the two instruction sets apart.
type amd64 struct {
	name     string
	register byte   // letter of a vector register
	bytes    int    // size of a vector
	rows     int    // of the largest tile
	b, a     [2]int // registers of a row of B, and of an element of A, which is broadcast
	masks    bool
}

var (
	setAVX512 = amd64{name: "AVX512", register: 'Z', bytes: 64, rows: 14, b: [2]int{28, 29}, a: [2]int{30, 31},
		masks: true}
	// the same, of half the width
	setThin = amd64{name: "AVX512", register: 'Y', bytes: 32, rows: 14, b: [2]int{28, 29}, a: [2]int{30, 31},
		masks: true}
	setAVX2 = amd64{name: "AVX2", register: 'Y', bytes: 32, rows: 6, b: [2]int{12, 13}, a: [2]int{14, 15}}
)

// Registers of a tile kernel: AX the argument; DX the tile's part of C, those of A and B are on the stack; CX and R15 a
// column of A and what is 7 rows below; DI a row of B; R8, R9 and R10 1, 3 and 5 rows of A; R11 a column of A; R12 a
// row of B; R13 the distance of what is prefetched soon; R14 and SI what is prefetched early, and the step to the next
// line of it; BX the number of columns left.

// row is the address of a row of A in the column at CX.
func row(i int) string {
	return [...]string{
		"(CX)", "(CX)(R8*1)", "(CX)(R8*2)", "(CX)(R9*1)", "(CX)(R8*4)", "(CX)(R10*1)", "(CX)(R9*2)",
		"(R15)", "(CX)(R8*8)", "(R15)(R8*2)", "(CX)(R10*2)", "(R15)(R8*4)", "(CX)(R9*4)", "(R15)(R9*2)",
	}[i]
}

func (m amd64) reg(i int) string { return fmt.Sprintf("%c%d", m.register, i) }

// accumulator is the register of a vector of the tile.
func (m amd64) accumulator(row, vectors, vector int) string { return m.reg(row*vectors + vector) }

// kind says what a kernel does with B.
type kind string

const (
	full   kind = "tile"
	half   kind = "half"   // B is bfloat16
	transB kind = "transB" // the columns of B lie together, and are copied as rows
	wide   kind = "wide"   // more columns
	broad  kind = "broad"  // more columns, and A is packed
	placed kind = "placed" // more columns, and the numbers of a row of A lie together
	stream kind = "stream" // rows of B side by side
)

func (m amd64) tileName(rows, vectors int, k kind) string {
	return fmt.Sprintf("%s%s_%dx%d", k, m.name, rows, vectors*m.bytes/4)
}

// tile writes a kernel and returns its name, as the others do.
func (m amd64) tile(s *source, rows, vectors int, k kind) (name string) {
	name = m.tileName(rows, vectors, k)
	s.begin(name, 16)
	s.op("MOVQ t+0(FP), AX")
	s.op("MOVQ tile_a(AX), CX")
	s.op("MOVQ CX, a-8(SP)")
	s.op("MOVQ tile_b(AX), DI")
	s.op("MOVQ DI, b-16(SP)")
	s.op("MOVQ tile_c(AX), DX")
	s.op("MOVQ tile_aRow(AX), R8")
	s.op("LEAQ (R8)(R8*2), R9")
	s.op("LEAQ (R8)(R8*4), R10")
	s.op("MOVQ tile_aCol(AX), R11")
	s.op("MOVQ tile_bRow(AX), R12")
	s.op("MOVQ tile_ahead(AX), R13")
	s.op("MOVQ tile_early(AX), R14")
	s.op("ADDQ DI, R14")
	s.op("MOVQ tile_earlyStep(AX), SI")
	if m.masks {
		s.op("KMOVW tile_lanes(AX), K1")
		s.op("KMOVW tile_lanes+2(AX), K2")
	}
	s.label("next")
	m.fetchNext(s, rows, vectors)
	m.initial(s, rows, vectors)
	s.op("MOVQ a-8(SP), CX")
	s.op("LEAQ (CX)(R9*2), R15")
	s.op("ADDQ R8, R15")
	s.op("MOVQ b-16(SP), DI")
	s.op("MOVQ tile_k(AX), BX")
	s.op("PCALIGN $32")
	s.label("column")
	m.column(s, rows, vectors, k)
	s.op("DECQ BX")
	s.op("JNZ column")
	m.final(s, rows, vectors)
	// The next tile.
	s.op("MOVQ tile_aStep(AX), CX")
	s.op("ADDQ CX, a-8(SP)")
	s.op("MOVQ tile_bStep(AX), DI")
	s.op("ADDQ DI, b-16(SP)")
	s.op("ADDQ tile_cStep(AX), DX")
	s.op("DECQ tile_count(AX)")
	s.op("JNZ next")
	s.op("VZEROUPPER")
	s.op("RET")
	return name
}

// fetchNext prefetches the C of the next tile.
func (m amd64) fetchNext(s *source, rows, vectors int) {
	s.op("MOVQ tile_cRow(AX), BX")
	s.op("MOVQ DX, CX")
	s.op("ADDQ tile_cStep(AX), CX")
	for r := range rows {
		for v := range vectors {
			if v*m.bytes%64 == 0 {
				s.op("PREFETCHT1 %d(CX)", v*m.bytes)
			}
		}
		if r < rows-1 {
			s.op("ADDQ BX, CX")
		}
	}
}

// initial sets the accumulators to 0, or to C where chains go on from there.
func (m amd64) initial(s *source, rows, vectors int) {
	s.op("CMPQ tile_mode(AX), $const_resume")
	s.op("JNE zero")
	s.op("MOVQ tile_cRow(AX), BX")
	s.op("MOVQ DX, CX")
	for r := range rows {
		for v := range vectors {
			if m.masks {
				s.op("VMOVUPS.Z %d(CX), K%d, %s", v*m.bytes, v+1, m.accumulator(r, vectors, v))
			} else {
				s.op("VMOVUPS %d(CX), %s", v*m.bytes, m.accumulator(r, vectors, v))
			}
		}
		if r < rows-1 {
			s.op("ADDQ BX, CX")
		}
	}
	s.op("JMP ready")
	s.label("zero")
	for i := range rows * vectors {
		s.op("VXORPS %s, %s, %s", m.reg(i), m.reg(i), m.reg(i))
	}
	s.label("ready")
}

// column adds the product of a column of A and a row of B.
func (m amd64) column(s *source, rows, vectors int, k kind) {
	for v := range vectors {
		b := m.reg(m.b[v])
		if k == half {
			s.op("VPMOVZXWD %d(DI), %s", v*m.bytes/2, b)
			s.op("VPSLLD $16, %s, %s", b, b)
		} else {
			s.op("VMOVUPS %d(DI), %s", v*m.bytes, b)
		}
	}
	between := m.between(rows, vectors, k)
	for r := range rows {
		a := m.reg(m.a[r%2])
		s.op("VBROADCASTSS %s, %s", row(r), a)
		for _, op := range between[r] {
			s.op(op)
		}
		for v := range vectors {
			s.op("VFMADD231PS %s, %s, %s", m.reg(m.b[v]), a, m.accumulator(r, vectors, v))
		}
	}
	s.op("ADDQ R12, DI")
	s.op("ADDQ R11, CX")
	if rows > 7 {
		s.op("ADDQ R11, R15")
	}
}

// between is what is done after the broadcast of each row. Prefetches that follow one another would wait together.
func (m amd64) between(rows, vectors int, k kind) [][]string {
	ops := make([][]string, rows)
	add := func(quarter int, op string, arguments ...any) {
		at := rows * quarter / 4
		ops[at] = append(ops[at], fmt.Sprintf(op, arguments...))
	}
	two := k != half && vectors*m.bytes > 64 // cache lines
	add(0, "PREFETCHT0 (DI)(R13*1)")
	if two {
		add(2, "PREFETCHT0 64(DI)(R13*1)")
	}
	if two {
		add(1, "PREFETCHT2 (R14)")
		add(3, "PREFETCHT2 (R14)(SI*1)")
		add(3, "LEAQ (R14)(SI*2), R14")
	} else {
		add(1, "PREFETCHT2 (R14)")
		add(1, "ADDQ SI, R14")
	}
	return ops
}

// final adds the accumulators to C, or stores them there.
func (m amd64) final(s *source, rows, vectors int) {
	s.op("MOVQ tile_cRow(AX), BX")
	s.op("CMPQ tile_mode(AX), $const_added")
	s.op("JNE store")
	s.op("MOVQ DX, CX")
	for r := range rows {
		for v := range vectors {
			sum := m.accumulator(r, vectors, v)
			if m.masks {
				s.op("VADDPS %d(CX), %s, K%d, %s", v*m.bytes, sum, v+1, sum)
			} else {
				s.op("VADDPS %d(CX), %s, %s", v*m.bytes, sum, sum)
			}
		}
		if r < rows-1 {
			s.op("ADDQ BX, CX")
		}
	}
	s.label("store")
	s.op("MOVQ DX, CX")
	for r := range rows {
		for v := range vectors {
			if m.masks {
				s.op("VMOVUPS %s, K%d, %d(CX)", m.accumulator(r, vectors, v), v+1, v*m.bytes)
			} else {
				s.op("VMOVUPS %s, %d(CX)", m.accumulator(r, vectors, v), v*m.bytes)
			}
		}
		if r < rows-1 {
			s.op("ADDQ BX, CX")
		}
	}
}

// family writes kernels of 1 row to so many, or of 1 number of a line, and the function that chooses among them.
func family(s *source, name string, field [2]string, most int, write func(n int) string) {
	names := make([]string, most+1)
	for n := 1; n <= most; n++ {
		names[n] = write(n)
	}
	s.chooseAMD64(name, field, names)
}

// chooseAMD64 writes a function that goes on as one of the kernels.
func (s *source) chooseAMD64(name string, field [2]string, kernels []string) {
	s.choose(name, field, kernels, "MOVQ ARGUMENT, AX", "MOVQ FIELD(AX), BX", "LEAQ TABLE, CX", "JMP (CX)(BX*8)")
}

func avx512() string {
	s, m := newSource(), setAVX512
	tiles := func(name string, m amd64, vectors int, k kind) {
		family(s, name, byRows, m.rows, func(r int) string { return m.tile(s, r, vectors, k) })
	}
	tiles("fullAVX512", m, 2, full)
	tiles("narrowAVX512", m, 1, full)
	tiles("thinAVX512", setThin, 1, full)
	tiles("halfAVX512", m, 2, half)
	family(s, "transBAVX512", byRows, m.rows, func(r int) string { return m.transB(s, r) })
	family(s, "broadAVX512", byRows, broadRows, func(r int) string { return m.broad(s, r, broad) })
	family(s, "placedAVX512", byRows, broadRows, func(r int) string { return m.broad(s, r, placed) })
	m.wides(s, wideAVX512)
	m.streamsAndTransposes(s)
	copyAVX512(s)
	transposeBlocksAVX512(s)
	m.widen(s)
	return s.String()
}

func avx2() string {
	s, m := newSource(), setAVX2
	family(s, "fullAVX2", byRows, m.rows, func(r int) string { return m.tile(s, r, 2, full) })
	family(s, "halfAVX2", byRows, m.rows, func(r int) string { return m.tile(s, r, 2, half) })
	m.wides(s, wideAVX2)
	m.streamsAndTransposes(s)
	m.widen(s)
	return s.String()
}

func (m amd64) streamsAndTransposes(s *source) {
	family(s, "stream"+m.name, byRows, streamRows, func(r int) string { return m.stream(s, r) })
	family(s, "transpose"+m.name, byWidth, m.bytes/4, func(w int) string { return m.transposed(s, w) })
}
