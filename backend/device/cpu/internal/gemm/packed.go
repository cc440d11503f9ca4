package gemm

import "math"

// panel is the number of columns that a packed matrix keeps together. It is the same at all levels, so that packing does
// not depend on the CPU.
const panel = 32

// Packed is a [K, N] matrix in panels of 32 columns, in the order in which the kernels read them: element (k, j) is at
// (j/32*K + k)*32 + j%32. Numbers are float32 or bfloat16, which is widened when it is used.
type Packed struct {
	K, N int
	full []float32 // either this
	half []uint16  // or this: bfloat16
}

// Pack packs the [k, n] matrix b.
func Pack(b View, k, n int) *Packed {
	p := &Packed{K: k, N: n, full: make([]float32, panels(n)*k*panel)}
	for j := range n {
		for i := range k {
			p.full[p.index(i, j)] = b.Data[i*b.Row+j*b.Col]
		}
	}
	return p
}

// PackBF16 packs a [k, n] matrix of bfloat16: element (i, j) is data[i*row + j*col].
func PackBF16(data []uint16, row, col, k, n int) *Packed {
	p := &Packed{K: k, N: n, half: make([]uint16, panels(n)*k*panel)}
	for j := range n {
		for i := range k {
			p.half[p.index(i, j)] = data[i*row+j*col]
		}
	}
	return p
}

// panels is the number of panels of n columns.
func panels(n int) int { return (n + panel - 1) / panel }

func (p *Packed) index(k, j int) int { return (j/panel*p.K+k)*panel + j%panel }

// Bytes is the memory that the numbers take.
func (p *Packed) Bytes() int64 { return 4*int64(len(p.full)) + 2*int64(len(p.half)) }

// At is element (k, j).
func (p *Packed) At(k, j int) float32 {
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

// piece copies numbers that lie together.
func (p *Packed) piece(dst []float32, at int) {
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
	for k := range p.K {
		dst[k] = p.At(k, j)
	}
}

// Unpack copies the matrix to a [K, N] view.
func (p *Packed) Unpack(dst View) {
	for k := range p.K {
		for j := range p.N {
			dst.Data[k*dst.Row+j*dst.Col] = p.At(k, j)
		}
	}
}

// widen is the float32 that a bfloat16 stands for.
func widen(v uint16) float32 { return math.Float32frombits(uint32(v) << 16) }
