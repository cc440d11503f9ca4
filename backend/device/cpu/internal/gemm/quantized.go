package gemm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
	"github.com/goart-dev/art/internal/float16"
	"github.com/goart-dev/art/internal/ggml"
)

// quantized is how a packed matrix holds the integers and scales of a quantized type. A panel of 32 columns is cut into
// tiles of 256 rows, or of 32 where scales have one level; K is a multiple of that. What follows lies in a tile behind
// one another, each for 32 columns:
//
//	d       float16, or bfloat16 for MXFP4
//	m       float16, where something is subtracted
//	s       8 bits for each group of rows, where scales have two levels
//	n       8 bits likewise, where something is subtracted
//	fifths  a dword for 32 rows: bit k is the fifth bit of row k, where codes have 5 bits
//	codes   of 4 bits: a dword for 8 rows, of which row i < 4 is nibble 2i, and row i+4 is nibble 2i+1
//	        of 8 bits: a dword for 4 rows
//
// A matrix of float16 has tiles of one row: codes of 16 bits, which are the numbers.
//
// Element (k, j) is table[code]·(d·s) + −m·n, which is what package ggml says of it: the product is exact. m of Q4_1
// and Q5_1 is added, and so is stored negated.
type quantized struct {
	ggml.Layout
	small                        [32]int8 // the table
	unsigned                     [16]uint8
	bias, class                  int  // of unsigned codes: they are below 16, 32, 64 or 256
	bfloat16                     bool // d
	tile, bytes                  int  // rows and bytes of a tile
	mAt, sAt, nAt, fifthAt, code int  // bytes into a tile
}

// quantizedOf returns how matrices of a type are packed; nil: they are not.
func quantizedOf(t ggml.Type) *quantized {
	if t == ggml.F16 {
		return &quantized{Layout: ggml.Layout{Bits: 16, Group: 1}, tile: 1, bytes: 2 * panel}
	}
	l, ok := t.Layout()
	if !ok {
		return nil
	}
	q := &quantized{Layout: l, bfloat16: t == ggml.MXFP4, tile: t.Block()}
	for i, v := range l.Table {
		q.small[i] = int8(v)
	}
	q.setUnsigned()
	at := 2 * panel
	take := func(bytes int) int {
		at += bytes
		return at - bytes
	}
	if l.Min {
		q.mAt = take(2 * panel)
	}
	if l.Super {
		q.sAt = take(q.tile / l.Group * panel)
		if l.Min {
			q.nAt = take(q.tile / l.Group * panel)
		}
	}
	bits := l.Bits
	if bits == 5 {
		q.fifthAt, bits = take(q.tile/8*panel), 4
	}
	q.code = take(q.tile * panel * bits / 8)
	q.bytes = at
	return q
}

// QuantizedBytes is what a packed [k, n] matrix of a quantized type takes; false: it is not packed as it is.
func QuantizedBytes(t ggml.Type, k, n int) (int, bool) {
	q := quantizedOf(t)
	if q == nil || k%q.tile != 0 {
		return 0, false
	}
	return panels(n) * (k / q.tile) * q.bytes, true
}

// NewQuantized is the packed [k, n] matrix of a quantized type whose bytes are data, [QuantizedBytes] of them.
func NewQuantized(t ggml.Type, data []byte, k, n int) *Packed {
	if size, ok := QuantizedBytes(t, k, n); !ok || size != len(data) {
		panic(fmt.Sprintf("gemm: %d bytes for a packed [%d, %d] matrix of %v", len(data), k, n, t))
	}
	return &Packed{K: k, N: n, quantized: quantizedOf(t), bytes: data}
}

// PackQuantized sets columns [j, j+n) of a packed matrix of type t: column j+i to the elements of row(i), which are
// blocks of the type. j is a multiple of 32, and so is n, but for the last columns. A scale that is infinite or NaN is
// an error.
func PackQuantized(workers *pool.Pool, p *Packed, j int, t ggml.Type, row func(i int) []byte, n int) error {
	p.check(j, n)
	if t == ggml.F16 {
		p.packFloat16(workers, j, row, n)
		return nil
	}
	q, block := p.quantized, t.Bytes(p.quantized.tile)
	errs := make([]error, panels(n))
	p.each(workers, n, func(at, width int) {
		var s ggml.Split
		var rows [panel][]byte
		for l := range width {
			rows[l] = row(at + l)
		}
		for k := 0; k < p.K; k += q.tile {
			tile := p.tileAt(k, j+at)
			for l := range panel {
				if l < width {
					from := k / q.tile * block
					t.Split(&s, rows[l][from:from+block])
				} else if l == width {
					s = ggml.Split{}
				}
				if !q.finite(&s) && errs[at/panel] == nil {
					errs[at/panel] = fmt.Errorf("row %d has a scale that is infinite or NaN", j+at+l)
				}
				q.set(tile, l, &s)
			}
		}
	})
	return errors.Join(errs...)
}

// packFloat16 is PackQuantized for a matrix of float16.
func (p *Packed) packFloat16(workers *pool.Pool, j int, row func(i int) []byte, n int) {
	p.each(workers, n, func(at, width int) {
		to := p.halves(0, j+at, p.K)
		for l := range width {
			from := row(at + l)
			for k := range p.K {
				to[k*panel+l] = binary.LittleEndian.Uint16(from[2*k:])
			}
		}
	})
}

// halves are so many rows, from one on, of the panel with column j of a matrix of float16.
func (p *Packed) halves(k, j, rows int) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(&p.tileAt(k, j)[0])), rows*panel)
}

// finite reports of a block what [ggml.Type.Finite] does: whether its scales, and so its elements, are numbers.
func (q *quantized) finite(s *ggml.Split) bool {
	const exponent = 0x7c00 // of float16
	if q.bfloat16 {
		return s.D < 0x7e00 // 2^125, of which an element is up to 12 times
	}
	return s.D&exponent != exponent && s.M&exponent != exponent
}

// In is the same quantized matrix in a copy of its bytes.
func (p *Packed) In(data []byte) *Packed {
	return &Packed{K: p.K, N: p.N, Int8: p.Int8, quantized: p.quantized, bytes: data[:len(p.bytes)]}
}

// IsQuantized reports whether the matrix holds blocks of a type of ggml.
func (p *Packed) IsQuantized() bool { return p != nil && p.quantized != nil }

// tileAt is the tile with element (k, j).
func (p *Packed) tileAt(k, j int) []byte {
	q := p.quantized
	at := (j/panel*(p.K/q.tile) + k/q.tile) * q.bytes
	return p.bytes[at : at+q.bytes : at+q.bytes]
}

// set writes a column of a tile.
func (q *quantized) set(tile []byte, column int, s *ggml.Split) {
	binary.LittleEndian.PutUint16(tile[2*column:], s.D)
	if q.Min {
		binary.LittleEndian.PutUint16(tile[q.mAt+2*column:], s.M)
	}
	if q.Super {
		for g := range q.tile / q.Group {
			tile[q.sAt+g*panel+column] = byte(s.S[g])
			if q.Min {
				tile[q.nAt+g*panel+column] = s.N[g]
			}
		}
	}
	if q.Bits == 8 {
		for k := 0; k < q.tile; k += 8 {
			v, to := binary.LittleEndian.Uint64(s.Codes[k:]), tile[q.code+k*panel+4*column:]
			binary.LittleEndian.PutUint32(to, uint32(v))
			binary.LittleEndian.PutUint32(to[4*panel:], uint32(v>>32))
		}
		return
	}
	for k := 0; k < q.tile; k += 8 {
		v := binary.LittleEndian.Uint64(s.Codes[k:]) & 0x0f0f0f0f0f0f0f0f
		binary.LittleEndian.PutUint32(tile[q.code+k/2*panel+4*column:], uint32(v|v>>28))
	}
	if q.Bits == 5 {
		for k := 0; k < q.tile; k += 32 {
			fifths := uint32(0)
			for i, c := range s.Codes[k : k+32] {
				fifths |= uint32(c>>4) << i
			}
			binary.LittleEndian.PutUint32(tile[q.fifthAt+k/8*panel+4*column:], fifths)
		}
	}
}

// scale is d·s and −m·n of a group of a column. Where nothing is subtracted the second is −0: t·d + −0 is t·d, with its
// sign where it is zero.
func (q *quantized) scale(tile []byte, group, l int) (d, m float32) {
	bits := binary.LittleEndian.Uint16(tile[2*l:])
	d, m = float16.Float32(bits), float32(math.Copysign(0, -1))
	if q.bfloat16 {
		d = widen(bits)
	}
	if q.Min {
		m = -float16.Float32(binary.LittleEndian.Uint16(tile[q.mAt+2*l:]))
	}
	if q.Super {
		d *= float32(int8(tile[q.sAt+group*panel+l])) //nolint:gosec // the bits of a signed number
		if q.Min {
			m *= float32(tile[q.nAt+group*panel+l])
		}
	}
	return d, m
}

// number is that of a code of a tile.
func (q *quantized) number(tile []byte, k, l int) float32 {
	if q.Bits == 8 {
		return float32(int8(tile[q.code+k/4*4*panel+4*l+k%4]))
	}
	shift := k % 8 * 8
	if k%8 >= 4 {
		shift -= 28
	}
	c := binary.LittleEndian.Uint32(tile[q.code+k/8*4*panel+4*l:]) >> shift & 15
	if q.Bits == 5 {
		c |= binary.LittleEndian.Uint32(tile[q.fifthAt+k/32*4*panel+4*l:]) >> (k % 32) & 1 << 4
	}
	return q.Table[c]
}

// dequantize sets dst to rows [k, k+len(dst)/32) of the panel with column j.
func (p *Packed) dequantize(dst []float32, k, j int) {
	q := p.quantized
	if q.Bits == 16 {
		widenAllFloat16(dst, p.halves(k, j, len(dst)/panel))
		return
	}
	var ds, dm [panel]float32
	for at := 0; at < len(dst); {
		tile, in := p.tileAt(k, j), k%q.tile
		for l := range panel {
			ds[l], dm[l] = q.scale(tile, in/q.Group, l)
		}
		for range min(q.Group-in%q.Group, (len(dst)-at)/panel) {
			for l := range panel { // products are exact, so this is one rounding
				dst[at+l] = float32(q.number(tile, k%q.tile, l)*ds[l]) + dm[l]
			}
			k, at = k+1, at+panel
		}
	}
}

// dequantize sets dst to rows [k, k+len(dst)/32) of the panel of p with column j.
func (b *block) dequantize(dst []float32, p *Packed, k, j int) {
	q := p.quantized
	in, rows := k%q.tile, len(dst)/panel
	if q.Bits == 16 {
		b.level.widenFloat16(dst, p.halves(k, j, rows))
		return
	}
	whole := in == 0 && rows%q.tile == 0
	if b.level.scales == nil || in%q.Group != 0 || rows%q.Group != 0 || !whole && in+rows > q.tile {
		p.dequantize(dst, k, j)
		return
	}
	b.setCoded(p, k, j, rows, ceil(rows, q.tile)*q.bytes)
	b.s.coded.c = unsafe.Pointer(&dst[0])
	b.level.dequantize(&b.s.coded)
}

// setCoded tells kernels of rows [k, k+rows) of the panel with column j, which are tiles, or groups of a tile, and
// computes their scales. Those that are so many bytes ahead are needed later.
func (b *block) setCoded(p *Packed, k, j, rows, ahead int) {
	q := p.quantized
	in, bits := k%q.tile, q.Bits
	t := coded{
		table: unsafe.Pointer(&q.Table), small: unsafe.Pointer(&q.small), kernel: q.Bits - 4,
		tiles: ceil(rows, q.tile), groups: min(rows, q.tile) / q.Group, lines: q.Group / 8,
		step: q.code, fifthStep: q.bytes - q.tile*panel/8,
	}
	switch q.Bits {
	case 5:
		bits = 4
	case 8:
		t.lines, t.kernel = 2*t.lines, 2
	}
	tile := unsafe.Pointer(&p.tileAt(k, j)[0])
	// No pointer may lie behind the matrix, not even for a moment.
	t.codes, t.fifths = unsafe.Add(tile, q.code+in*panel*bits/8), unsafe.Add(tile, q.fifthAt+in*panel/8)
	b.s.scaling = q.scaling(tile, t.tiles, t.groups)
	b.s.scaling.ahead = ahead
	if group := in / q.Group * panel; q.Super {
		b.s.scaling.s += group
		if q.Min {
			b.s.scaling.n += group
		}
	}
	t.scales = b.scale(0)
	b.s.coded = t
}

// scaling tells of the scales of so many groups of each of some tiles of a panel.
func (q *quantized) scaling(tile unsafe.Pointer, tiles, groups int) scaling {
	t := scaling{tile: tile, m: q.mAt, s: q.sAt, n: q.nAt, tiles: tiles, step: q.bytes, groups: groups}
	if q.bfloat16 {
		t.bfloat16 = 1
	}
	return t
}

// scale computes scales, in memory of its own for each of two panels.
func (b *block) scale(which int) unsafe.Pointer {
	t := &b.s.scaling
	size := t.tiles * t.groups * 2 * panel
	t.dst = unsafe.Pointer(&b.s.scales.take(2 * size)[which*size])
	b.level.scales(t)
	return t.dst
}

// multipliesCodes reports whether kernels multiply so many rows of A by codes in registers.
func (g *call) multipliesCodes(rows int) bool {
	p := g.b.packed
	return p.IsQuantized() && p.quantized.Bits <= 8 && !g.b.transposed && rows <= g.level.codedRows && g.a.Col == 1
}

// multiplyCodes goes through the contracted axis of one or two panels before those that follow: the codes of a panel
// are contiguous.
func (b *block) multiplyCodes() {
	for j, width := 0, 0; j < b.nb; j += width {
		width = min(panel, b.nb-j)
		if b.mb == 1 && b.level.multiplyTwo {
			width = min(2*panel, b.nb-j)
		}
		part := *b
		for end := b.k0 + b.kc; part.k0 < end; part.k0 += Block {
			part.kc = min(Block, end-part.k0)
			part.multiplyPanels(j, width)
			part.mode = added
		}
	}
}

// multiplyPanels computes a fixed block of the contracted axis for up to two panels.
func (b *block) multiplyPanels(j, width int) {
	p := b.b.packed
	q := p.quantized
	ahead := b.kc / q.tile * q.bytes // the next block, and after the last one that of the panels that follow
	if width > panel && b.k0+b.kc == b.k {
		ahead += p.K / q.tile * q.bytes
	}
	b.setCoded(p, b.k0, b.j0+j, b.kc, ahead)
	t := &b.s.coded
	t.mode, t.lanes = b.mode, 1<<width-1
	kernel := t.kernel * (1 + b.level.multiplyRows)
	if width > panel {
		kernel--
		t.panel, t.ahead = p.K/q.tile*q.bytes, ahead
		b.s.scaling.tile = unsafe.Add(b.s.scaling.tile, t.panel)
		t.scalesPanel = int(uintptr(b.scale(1)) - uintptr(t.scales))
	}
	t.aRow, t.cRow = 4*b.a.Row, 4*b.out.Row
	for _, run := range splitRows(b.mb, b.level.multiplyRows) {
		t.kernel = kernel + run.height
		for i := range run.count {
			row := run.row + i*run.height
			t.a = unsafe.Pointer(&b.a.Data[(b.i0+row)*b.a.Row+b.k0])
			c := b.out.Data[row*b.out.Row+j:]
			if width%panel == 0 || b.level.masks {
				t.c = unsafe.Pointer(&c[0])
				b.level.multiply(t)
				continue
			}
			space := Out{b.s.edge[:run.height*panel], panel}
			copyRows(space, Out{c, b.out.Row}, run.height, width)
			t.c, t.cRow = unsafe.Pointer(&space.Data[0]), 4*panel
			b.level.multiply(t)
			copyRows(Out{c, b.out.Row}, space, run.height, width)
		}
	}
}

// column copies column j of a quantized matrix.
func (p *Packed) column(dst []float32, j int) {
	q, l := p.quantized, j%panel
	for k := 0; k < p.K; k += q.tile {
		if q.Bits == 16 {
			dst[k] = float16.Float32(p.halves(k, j, 1)[l])
			continue
		}
		tile := p.tileAt(k, j)
		for g := range q.tile / q.Group {
			d, m := q.scale(tile, g, l)
			for i := g * q.Group; i < (g+1)*q.Group; i++ {
				dst[k+i] = float32(q.number(tile, i, l)*d) + m
			}
		}
	}
}
