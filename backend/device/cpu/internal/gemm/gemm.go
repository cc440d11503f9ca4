// Package gemm multiplies float32 matrices.
//
// The contracted axis is cut into fixed blocks of [Block]. Each element of a matmul is the sum of its blocks, added in
// their order, and each of those is one chain of fused multiply-adds:
//
//	c[i, j] = ((s[0] + s[1]) + s[2]) + ...
//	s[l]    = fma(a[i, e-1], b[e-1, j], ... fma(a[i, f+1], b[f+1, j], fma(a[i, f], b[f, j], +0)))
//
// where block l is [f, e) = [l*Block, min((l+1)*Block, k)). A matmul that is added adds its blocks to the old c[i, j]
// in the same way. A block may be computed part by part,
// see [Kernels.Resume]. Kernels compute several elements at once and never split a chain. So an element has the same
// bits whatever the sizes, strides, batches, packing, number of workers and instruction set.
package gemm

import (
	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// View is a matrix in a slice: element (i, j) is Data[i*Row + j*Col]. The steps are not negative.
type View struct {
	Data     []float32
	Row, Col int
}

// T is the transposed view.
func (v View) T() View { return View{v.Data, v.Col, v.Row} }

// Out is the matrix of a result in a slice: element (i, j) is Data[i*Row + j].
type Out struct {
	Data []float32
	Row  int
}

// From is the matrix without its first columns.
func (o Out) From(column int) Out { return Out{o.Data[column:], o.Row} }

// view is the result as an operand.
func (o Out) view() View { return View{o.Data, o.Row, 1} }

// Matmul is C = A·B, or C = C + A·B: A is [M, K], B is [K, N], and C is [M, N].
type Matmul struct {
	C       Out
	A, B    View
	M, N, K int
	Add     bool
}

// Axis is an axis of a batch: N matmuls, and the number of elements from a matrix to the next; 0 uses one matrix for
// all of the axis. The steps of C keep the results apart.
type Axis struct{ N, A, B, C int }

// Kernels computes matmuls with the instructions of a level. Its methods may be called from several goroutines. A nil
// pool is one worker.
type Kernels struct {
	level *level
	free  scratches
	packs packsList
}

// New returns the kernels of a level that this CPU has.
func New(l cpuid.Level) *Kernels { return &Kernels{level: levelOf(l)} }

// Mul computes a matmul.
func (k *Kernels) Mul(p *pool.Pool, m Matmul) {
	k.run(p, call{c: m.C, a: m.A, b: operand{view: m.B}, m: m.M, n: m.N, k: m.K, add: m.Add})
}

// Resume computes the next part of a fixed block of the contracted axis: the chains go on from C, which is what the
// parts before came to.
func (k *Kernels) Resume(p *pool.Pool, m Matmul) {
	k.run(p, call{c: m.C, a: m.A, b: operand{view: m.B}, m: m.M, n: m.N, k: m.K, add: m.Add, resume: true})
}

// MulBatch is [Kernels.Mul] for each member of a batch, the last axis of which varies fastest.
func (k *Kernels) MulBatch(p *pool.Pool, batch []Axis, m Matmul) {
	k.run(p, call{batch: batch, c: m.C, a: m.A, b: operand{view: m.B}, m: m.M, n: m.N, k: m.K, add: m.Add})
}

// MulPacked is [Kernels.Mul] with a packed matrix: c [m, N] of a [m, K] and b [K, N].
func (k *Kernels) MulPacked(p *pool.Pool, c Out, a View, b *Packed, m int, add bool) {
	g := call{c: c, a: a, b: operand{packed: b}, m: m, n: b.N, k: b.K, add: add}
	if g.ofIntegers() {
		k.integers(p, g)
		return
	}
	k.run(p, g)
}

// MulPackedT is [Kernels.Mul] with the transpose of a packed matrix: c [m, K] of a [m, N] and b [K, N].
func (k *Kernels) MulPackedT(p *pool.Pool, c Out, a View, b *Packed, m int, add bool) {
	k.run(p, call{c: c, a: a, b: operand{packed: b, transposed: true}, m: m, n: b.K, k: b.N, add: add})
}
