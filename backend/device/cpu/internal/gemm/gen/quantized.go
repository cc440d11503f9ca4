package main

import "fmt"

// quantizedRows are the most rows of A of a kernel that multiplies codes in registers.
const quantizedRows = 8

// quantizedAVX512 writes the kernels for codes with scales.
func quantizedAVX512() string {
	s := newSource()
	scalesAVX512(s)
	var dequantize, multiply []string
	for _, bits := range codeBits {
		q := codes{bits: bits, panels: 1}
		q.dequantize(s)
		dequantize = append(dequantize, q.name())
		q.rows, q.panels = 1, 2 // four chains hide the latency of additions, two do not
		q.multiply(s)
		multiply = append(multiply, q.name())
		for q.rows, q.panels = 1, 1; q.rows <= quantizedRows; q.rows++ {
			q.multiply(s)
			multiply = append(multiply, q.name())
		}
	}
	s.chooseAMD64("dequantizeAVX512", byKernel, dequantize)
	s.chooseAMD64("multiplyAVX512", byKernel, multiply)
	return s.String()
}

var codeBits = []int{4, 5, 8}

// scalesAVX512 writes the kernel that makes float32 scales of those of some tiles.
//
// Registers: AX the argument; DI where they go; SI a tile; R8, R9 and R10 the offsets of m, s and n in it, 0 where
// there are none; CX and DX places in s and n; BX the tiles and R13 the groups left; R11 what is prefetched.
func scalesAVX512(s *source) {
	s.WriteString("\n// func scalesAVX512(t *scaling)\nTEXT ·scalesAVX512(SB), NOSPLIT, $0-8\n")
	s.op("MOVQ t+0(FP), AX")
	s.op("MOVQ scaling_dst(AX), DI")
	s.op("MOVQ scaling_tile(AX), SI")
	s.op("MOVQ scaling_m(AX), R8")
	s.op("MOVQ scaling_s(AX), R9")
	s.op("MOVQ scaling_n(AX), R10")
	s.op("MOVQ scaling_tiles(AX), BX")
	s.op("MOVQ scaling_ahead(AX), R11")
	s.op("MOVL $0x80000000, CX")
	s.op("VPBROADCASTD CX, Z7")
	s.label("tile")
	s.op("CMPQ scaling_bfloat16(AX), $0")
	s.op("JNE bfloat16")
	s.op("VCVTPH2PS (SI), Z0")
	s.op("VCVTPH2PS 32(SI), Z1")
	s.op("JMP minimum")
	s.label("bfloat16")
	for i := range 2 {
		s.op("VPMOVZXWD %d(SI), Z%d", 32*i, i)
		s.op("VPSLLD $16, Z%d, Z%d", i, i)
	}
	s.label("minimum")
	s.op("VMOVAPS Z7, Z2")
	s.op("VMOVAPS Z7, Z3")
	s.op("TESTQ R8, R8")
	s.op("JE second")
	for i := range 2 {
		s.op("VCVTPH2PS %d(SI)(R8*1), Z%d", 32*i, 2+i)
		s.op("VPXORD Z7, Z%d, Z%d", 2+i, 2+i)
	}
	s.label("second")
	s.op("LEAQ (SI)(R9*1), CX")
	s.op("LEAQ (SI)(R10*1), DX")
	s.op("MOVQ scaling_groups(AX), R13")
	s.op("PREFETCHT0 (SI)(R11*1)")
	s.op("PREFETCHT0 64(SI)(R11*1)")
	scaleGroupAVX512(s)
	s.op("DECQ R13")
	s.op("JNZ group")
	s.op("ADDQ scaling_step(AX), SI")
	s.op("DECQ BX")
	s.op("JNZ tile")
	packEnd(s)
}

// scaleGroupAVX512 writes the scales of a group: d and -m as they are, or multiplied by s and n.
func scaleGroupAVX512(s *source) {
	s.label("group")
	s.op("TESTQ R9, R9")
	s.op("JE same")
	for i := range 2 {
		s.op("VPMOVSXBD %d(CX), Z4", 16*i)
		s.op("VCVTDQ2PS Z4, Z4")
		s.op("VMULPS Z%d, Z4, Z4", i)
		s.op("VMOVUPS Z4, %d(DI)", 64*i)
	}
	s.op("PREFETCHT0 (CX)(R11*1)")
	s.op("ADDQ $32, CX")
	s.op("TESTQ R10, R10")
	s.op("JE sameMinimum")
	for i := range 2 {
		s.op("VPMOVZXBD %d(DX), Z4", 16*i)
		s.op("VCVTDQ2PS Z4, Z4")
		s.op("VMULPS Z%d, Z4, Z4", 2+i)
		s.op("VMOVUPS Z4, %d(DI)", 128+64*i)
	}
	s.op("PREFETCHT0 (DX)(R11*1)")
	s.op("ADDQ $32, DX")
	s.op("JMP stored")
	s.label("same")
	s.op("VMOVUPS Z0, (DI)")
	s.op("VMOVUPS Z1, 64(DI)")
	s.label("sameMinimum")
	s.op("VMOVUPS Z2, 128(DI)")
	s.op("VMOVUPS Z3, 192(DI)")
	s.label("stored")
	s.op("ADDQ $256, DI")
}

// Codes are prefetched twice, early into L2 and then into L1.
//
// Measured on a Zen 5, one thread and matrices from memory: one stage of 4 KB takes 1.3 times as long for one row of
// Q4_K and Q6_K and 1.25 and 1.4 for four, and no prefetch twice as long and more.
const prefetchNear = 1024

func (q codes) early() int {
	if q.bits == 8 {
		return 12288
	}
	return 8192
}

// codes writes kernels for codes of so many bits. Those that dequantize store rows of 32 numbers; those that multiply
// keep rows x 32·panels sums.
//
// Registers: AX the argument; SI the codes, and DX the fifth bits; R14 the scales; CX a column of A, R8, R9 and R10 1,
// 3 and 5 rows of it; DI the destination; BX, R12 and R13 the lines, groups and tiles left; R11 from a panel's codes to
// the next's, R15 the same for scales, or of many rows the eighth; of two panels R9 and R10 what of them is prefetched.
//
// Vectors: sums from 0 on; behind them for each panel d·s (2), -m·n (2), codes (2) and fifth bits (2); then numbers
// (2), an element of A (2); 29 the bit mask, 30 and 31 the table.
type codes struct{ bits, rows, panels int }

func (q codes) name() string {
	if q.rows == 0 {
		return fmt.Sprintf("dequantize%dAVX512", q.bits)
	}
	return fmt.Sprintf("multiply%dAVX512_%dx%d", q.bits, q.rows, 32*q.panels)
}

func (q codes) begin(s *source) {
	s.begin(q.name(), 0)
	s.op("MOVQ t+0(FP), AX")
	s.op("MOVQ coded_codes(AX), SI")
	s.op("MOVQ coded_scales(AX), R14")
	s.op("MOVQ coded_table(AX), R12")
	if q.bits < 8 {
		s.op("VMOVUPS (R12), Z30")
	}
	if q.bits == 5 {
		s.op("VMOVUPS 64(R12), Z31")
		s.op("MOVQ coded_fifths(AX), DX")
		s.op("MOVL $16, R12")
		s.op("VPBROADCASTD R12, Z29")
	}
	s.op("MOVQ coded_tiles(AX), R13")
}

// The vectors of a panel.
func (q codes) base(panel int) int {
	each := 6
	if q.bits == 5 {
		each = 8
	}
	return 2*q.rows*q.panels + each*panel
}
func (q codes) scale(panel, v int) int   { return q.base(panel) + v }
func (q codes) minimum(panel, v int) int { return q.base(panel) + 2 + v }
func (q codes) code(panel, v int) int    { return q.base(panel) + 4 + v }
func (q codes) fifth(panel, v int) int   { return q.base(panel) + 6 + v }
func (q codes) number(v int) int         { return q.base(q.panels) + v }

// load loads the scales and fifth bits of a group.
func (q codes) load(s *source) {
	for p := range q.panels {
		at := "(R14)"
		if p > 0 {
			at = "(R14)(R15*1)"
		}
		for v := range 2 {
			s.op("VMOVUPS %d%s, Z%d", 64*v, at, q.scale(p, v))
			s.op("VMOVUPS %d%s, Z%d", 128+64*v, at, q.minimum(p, v))
		}
		if q.bits == 5 {
			at := "(DX)"
			if p > 0 {
				at = "(DX)(R11*1)"
			}
			for v := range 2 {
				s.op("VMOVUPS %d%s, Z%d", 64*v, at, q.fifth(p, v))
			}
		}
	}
}

// groups goes through tiles, their groups, and lines of those: four or eight rows. each is called for each row of a
// line.
func (q codes) groups(s *source, each func(k int), line func()) {
	rows := 8
	if q.bits == 8 {
		rows = 4
	}
	s.label("tile")
	s.op("MOVQ coded_groups(AX), R12")
	s.label("group")
	q.load(s)
	s.op("ADDQ $256, R14")
	if q.bits == 5 {
		s.op("ADDQ $128, DX")
	}
	s.op("MOVQ coded_lines(AX), BX")
	s.op("PCALIGN $32")
	s.label("line")
	for p := range q.panels {
		at := "(SI)"
		if p > 0 {
			at = "(SI)(R11*1)"
		}
		for v := range 2 {
			s.op("VMOVUPS %d%s, Z%d", 64*v, at, q.code(p, v))
			if q.panels == 1 {
				s.op("PREFETCHT1 %d%s", q.early()+64*v, at)
			} else {
				s.op("PREFETCHT1 %d(SI)(R%d*1)", 64*v, 9+p)
			}
			s.op("PREFETCHT0 %d%s", prefetchNear+64*v, at)
		}
	}
	if q.rows > 7 {
		s.op("LEAQ (CX)(R9*2), R15")
		s.op("ADDQ R8, R15")
	}
	for k := range rows {
		each(k)
	}
	if q.bits == 5 {
		for p := range q.panels {
			for v := range 2 {
				s.op("VPSRLD $8, Z%d, Z%d", q.fifth(p, v), q.fifth(p, v))
			}
		}
	}
	line()
	s.op("ADDQ $128, SI")
	s.op("DECQ BX")
	s.op("JNZ line")
	s.op("DECQ R12")
	s.op("JNZ group")
	s.op("ADDQ coded_step(AX), SI")
	if q.bits == 5 {
		s.op("ADDQ coded_fifthStep(AX), DX")
	}
	s.op("DECQ R13")
	s.op("JNZ tile")
}

// numbers makes the numbers of row k of a line.
func (q codes) numbers(s *source, panel, k int) {
	for v := range 2 {
		to, code := q.number(v), q.code(panel, v)
		switch q.bits {
		case 4:
			s.shift(8*(k%4)+4*(k/4), code, to)
			s.op("VPERMPS Z30, Z%d, Z%d", to, to)
		case 5:
			bit := q.number(2 + v)
			s.shift(8*(k%4)+4*(k/4), code, to)
			s.op("VPROLD $%d, Z%d, Z%d", (36-k)%32, q.fifth(panel, v), bit)
			s.op("VPTERNLOGD $0xd8, Z29, Z%d, Z%d", bit, to) // the bit of the mask is of that, the others are of this
			s.op("VPERMI2PS Z31, Z30, Z%d", to)
		case 8:
			s.op("VPSLLD $%d, Z%d, Z%d", 24-8*k, code, to)
			s.op("VPSRAD $24, Z%d, Z%d", to, to)
			s.op("VCVTDQ2PS Z%d, Z%d", to, to)
		}
	}
	for v := range 2 {
		s.op("VFMADD213PS Z%d, Z%d, Z%d", q.minimum(panel, v), q.scale(panel, v), q.number(v))
	}
}

// shift shifts dwords to the right.
func (s *source) shift(by, from, to int) {
	if by == 0 {
		s.op("VMOVDQA32 Z%d, Z%d", from, to)
		return
	}
	s.op("VPSRLD $%d, Z%d, Z%d", by, from, to)
}

func (q codes) dequantize(s *source) {
	q.begin(s)
	s.op("MOVQ coded_c(AX), DI")
	rows := 8
	if q.bits == 8 {
		rows = 4
	}
	q.groups(s, func(k int) {
		q.numbers(s, 0, k)
		for v := range 2 {
			s.op("VMOVUPS Z%d, %d(DI)", q.number(v), 128*k+64*v)
		}
	}, func() { s.op("ADDQ $%d, DI", 128*rows) })
	packEnd(s)
}

// multiply adds products of rows of A, whose numbers are contiguous.
func (q codes) multiply(s *source) {
	q.begin(s)
	s.op("MOVQ coded_aRow(AX), R8")
	s.op("LEAQ (R8)(R8*2), R9")
	s.op("LEAQ (R8)(R8*4), R10")
	s.op("MOVQ coded_panel(AX), R11")
	if q.panels == 2 {
		s.op("MOVQ coded_ahead(AX), R9")
		s.op("LEAQ (R11)(R9*1), R10")
	}
	s.op("MOVQ coded_scalesPanel(AX), R15")
	vectors := 2 * q.panels
	for v := range vectors {
		s.op("KMOVW coded_lanes+%d(AX), K%d", 2*v, v+1)
	}
	s.op("MOVQ coded_c(AX), DI")
	s.op("MOVQ coded_cRow(AX), BX")
	s.op("CMPQ coded_mode(AX), $const_resume")
	s.op("JNE zero")
	q.eachSum(s, func(sum, v int) { s.op("VMOVUPS.Z %d(DI), K%d, Z%d", 64*v, v+1, sum) })
	s.op("JMP ready")
	s.label("zero")
	for i := range vectors * q.rows {
		s.op("VXORPS Z%d, Z%d, Z%d", i, i, i)
	}
	s.label("ready")
	s.op("MOVQ coded_a(AX), CX")
	rows := 8
	if q.bits == 8 {
		rows = 4
	}
	a := q.number(2)
	if q.bits == 5 {
		a += 2
	}
	q.groups(s, func(k int) {
		for p := range q.panels {
			q.numbers(s, p, k)
			for r := range q.rows {
				if p == 0 || q.rows > 1 {
					s.op("VBROADCASTSS %d%s, Z%d", 4*k, row(r), a)
				}
				for v := range 2 {
					s.op("VFMADD231PS Z%d, Z%d, Z%d", q.number(v), a, r*vectors+2*p+v)
				}
			}
		}
	}, func() { s.op("ADDQ $%d, CX", 4*rows) })
	s.op("MOVQ coded_c(AX), DI")
	s.op("MOVQ coded_cRow(AX), BX")
	s.op("CMPQ coded_mode(AX), $const_added")
	s.op("JNE store")
	q.eachSum(s, func(sum, v int) { s.op("VADDPS %d(DI), Z%d, K%d, Z%d", 64*v, sum, v+1, sum) })
	s.op("MOVQ coded_c(AX), DI")
	s.label("store")
	q.eachSum(s, func(sum, v int) { s.op("VMOVUPS Z%d, K%d, %d(DI)", sum, v+1, 64*v) })
	packEnd(s)
}

// eachSum goes through the rows of C, from DI on.
func (q codes) eachSum(s *source, f func(sum, v int)) {
	vectors := 2 * q.panels
	for r := range q.rows {
		for v := range vectors {
			f(r*vectors+v, v)
		}
		if r < q.rows-1 {
			s.op("ADDQ BX, DI")
		}
	}
}
