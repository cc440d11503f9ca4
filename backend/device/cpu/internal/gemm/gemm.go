// Package gemm multiplies float32 matrices.
//
// Each element of a product is one chain of fused multiply-adds over the contracted axis, in its order:
//
//	c[i, j] = fma(a[i, k-1], b[k-1, j], ... fma(a[i, 1], b[1, j], fma(a[i, 0], b[0, j], init)))
//
// where init is +0, or the old c[i, j] when a product is added. Kernels compute several elements at once and never split
// a chain, and a block of the contracted axis goes on from the float32 that the block before left. So an element has the
// same bits whatever the sizes, strides, batches, packing, number of workers and instruction set.
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

// Axis is an axis of a batch: N products, and the number of elements from a matrix to the next; 0 uses one matrix for
// all of the axis. The steps of C keep the products apart.
type Axis struct{ N, A, B, C int }

// Kernels computes products with the instructions of a level. Its methods may be called from several goroutines.
type Kernels struct {
	level *level
	free  scratches
	packs packsList
}

// New returns the kernels of a level that this CPU has.
func New(l cpuid.Level) *Kernels { return &Kernels{level: levelOf(l)} }

// Mul sets c to a·b, or adds a·b to it: a is [m, k], b is [k, n], and element (i, j) of c is c[i*ldc+j]. A nil pool is
// one worker.
func (k *Kernels) Mul(p *pool.Pool, c []float32, ldc int, a, b View, m, n, kk int, add bool) {
	k.MulBatch(p, nil, c, ldc, a, b, m, n, kk, add)
}

// MulBatch is [Kernels.Mul] for each product of a batch, the last axis of which varies fastest.
func (k *Kernels) MulBatch(p *pool.Pool, batch []Axis, c []float32, ldc int, a, b View, m, n, kk int, add bool) {
	k.run(p, product{batch: batch, c: c, ldc: ldc, a: a, b: operand{view: b}, m: m, n: n, k: kk, add: add})
}

// MulPacked is [Kernels.Mul] with a packed matrix: c [m, N] of a [m, K] and b [K, N].
func (k *Kernels) MulPacked(p *pool.Pool, c []float32, ldc int, a View, b *Packed, m int, add bool) {
	k.run(p, product{c: c, ldc: ldc, a: a, b: operand{packed: b}, m: m, n: b.N, k: b.K, add: add})
}

// MulPackedT is [Kernels.Mul] with the transpose of a packed matrix: c [m, K] of a [m, N] and b [K, N].
func (k *Kernels) MulPackedT(p *pool.Pool, c []float32, ldc int, a View, b *Packed, m int, add bool) {
	k.run(p, product{c: c, ldc: ldc, a: a, b: operand{packed: b, transposed: true}, m: m, n: b.K, k: b.N, add: add})
}
