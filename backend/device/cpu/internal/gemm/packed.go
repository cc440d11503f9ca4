package gemm

import (
	"fmt"
	"math"

	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// panel is the number of columns that a packed matrix keeps together. It is the same at all levels, so that packing
// does not depend on the CPU.
const panel = 32

// Packed is a [K, N] matrix in panels of 32 columns, in the order in which the kernels read them: element (k, j) is at
// (j/32*K + k)*32 + j%32. Numbers are float32 or bfloat16, which is widened when it is used.
type Packed struct {
	K, N int
	full []float32 // either this
	half []uint16  // or this: bfloat16

	// Int8 has products of [Kernels.MulPacked] round rows of A to 8 bits: see integer.go. The matrix holds integers.
	Int8 bool

	quantized *quantized // or integers with scales,
	bytes     []byte     // in tiles
}

// PackedSize is the number of elements that a packed [k, n] matrix has: that of whole panels.
func PackedSize(k, n int) int { return panels(n) * k * panel }

// NewPacked is the packed [k, n] matrix whose elements are data, [PackedSize] of them: float32, or bfloat16 as uint16.
func NewPacked[T float32 | uint16](data []T, k, n int) *Packed {
	if len(data) != PackedSize(k, n) {
		panic(fmt.Sprintf("gemm: %d elements for a packed [%d, %d] matrix, which has %d", len(data), k, n, PackedSize(k, n)))
	}
	p := &Packed{K: k, N: n}
	switch data := any(data).(type) {
	case []float32:
		p.full = data
	case []uint16:
		p.half = data
	}
	return p
}

// Pack sets columns [j, j+n) of a packed matrix of float32 to the [K, n] matrix b. j is a multiple of 32, and so is n,
// but for the last columns.
func (k *Kernels) Pack(workers *pool.Pool, p *Packed, j int, b View, n int) {
	p.check(j, n)
	if p.K > 0 && n > 0 {
		inside("b", b, 0, p.K, n)
	}
	p.each(workers, n, func(at, width int) {
		s := k.free.get()
		dst := p.full[p.index(0, j+at):][:p.K*panel]
		if width < panel {
			clear(dst)
		}
		src := View{b.Data[at*b.Col:], b.Row, b.Col}
		k.level.pack(s, lines{dst: Out{dst, panel}, src: src, k: p.K, width: width, ahead: panel * b.Col})
		k.free.put(s)
	})
}

// ViewBF16 is a matrix of bfloat16 in a slice: element (i, j) is Data[i*Row + j*Col].
type ViewBF16 struct {
	Data     []uint16
	Row, Col int
}

// PackBF16 is Pack for a packed matrix of bfloat16.
func PackBF16(workers *pool.Pool, p *Packed, j int, b ViewBF16, n int) {
	p.check(j, n)
	p.each(workers, n, func(at, width int) {
		dst := p.half[p.index(0, j+at):][:p.K*panel]
		if width < panel {
			clear(dst)
		}
		for l := range width {
			src := b.Data[(at+l)*b.Col:]
			for i := range p.K {
				dst[i*panel+l] = src[i*b.Row]
			}
		}
	})
}

// check panics unless columns [j, j+n) are panels of the matrix.
func (p *Packed) check(j, n int) {
	if j < 0 || n < 0 || j+n > p.N || j%panel != 0 || n%panel != 0 && j+n != p.N {
		panic(fmt.Sprintf("gemm: columns %d to %d are not panels of a packed [%d, %d] matrix", j, j+n, p.K, p.N))
	}
}

// each calls f for the panels of n columns, by all workers.
func (p *Packed) each(workers *pool.Pool, n int, f func(at, width int)) {
	if p.K == 0 {
		return
	}
	workers.For(panels(n), func(i int) { f(i*panel, min(panel, n-i*panel)) })
}

// panels is the number of panels of n columns.
func panels(n int) int { return (n + panel - 1) / panel }

func (p *Packed) index(k, j int) int { return (j/panel*p.K+k)*panel + j%panel }

// At is element (k, j).
func (p *Packed) At(k, j int) float32 {
	if p.quantized != nil {
		var row [panel]float32
		p.dequantize(row[:], k, j)
		return row[j%panel]
	}
	if p.half != nil {
		return widen(p.half[p.index(k, j)])
	}
	return p.full[p.index(k, j)]
}

// Row copies row k, of N numbers, to dst.
func (p *Packed) Row(dst []float32, k int) {
	for j := 0; j < p.N; j += panel {
		p.piece(dst[j:min(j+panel, p.N)], p.index(k, j))
	}
}

// piece copies contiguous numbers.
func (p *Packed) piece(dst []float32, at int) {
	if p.quantized != nil {
		var row [panel]float32
		p.dequantize(row[:], at/panel%p.K, at/panel/p.K*panel)
		copy(dst, row[:])
		return
	}
	if p.half == nil {
		copy(dst, p.full[at:])
		return
	}
	for i, v := range p.half[at : at+len(dst)] {
		dst[i] = widen(v)
	}
}

// Column copies column j, of K numbers, to dst. It is a row of the [N, K] matrix.
func (p *Packed) Column(dst []float32, j int) {
	if p.quantized != nil {
		p.column(dst, j)
		return
	}
	for k := range p.K {
		dst[k] = p.At(k, j)
	}
}

// widen is the float32 that a bfloat16 stands for.
func widen(v uint16) float32 { return math.Float32frombits(uint32(v) << 16) }
