package cpu

import (
	"math"
	"slices"
	"unsafe"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// side is an operand of a product: a matrix for each element of the batch.
type side struct {
	v          view  // what is read
	batch      []int // offsets of the matrices
	rows       int   // the axes that are kept, as one
	row, inner int   // strides of rows and of the contracted axes
}

// side brings an operand to matrices. It is copied when its axes cannot be walked with two strides.
func (c *compiler) side(n *node, v view, batch, contract []int) side {
	var keep []int
	for i := range v.dims {
		if !slices.Contains(batch, i) && !slices.Contains(contract, i) {
			keep = append(keep, i)
		}
	}
	v = v.transpose(slices.Concat(batch, keep, contract))
	b, k := len(batch), len(batch)+len(keep)
	rows, inner := volume(v.dims[b:k]), volume(v.dims[k:])
	m, ok := v.after(b).reshape([]int{rows, inner})
	if !ok || m.strides[0] < 0 || m.strides[1] < 0 {
		v = c.copy(v, shapes.Make(v.of.kind, v.dims...), n.id)
		m, _ = v.after(b).reshape([]int{rows, inner})
	}
	places := v.before(b)
	return side{v: v, batch: offsetsOf(places), rows: rows, row: m.strides[0], inner: m.strides[1]}
}

// before returns the first axes of v, after those that follow, from its first element.
func (v view) before(n int) view {
	return view{of: v.of, off: v.off, dims: v.dims[:n], strides: v.strides[:n]}
}

func (v view) after(n int) view {
	return view{of: v.of, off: v.off, dims: v.dims[n:], strides: v.strides[n:]}
}

// product lowers a product of matrices.
func (c *compiler) product(n *node, lhs, rhs view) view {
	at := n.attr.(product)
	a, b := c.side(n, lhs, at.batch[0], at.contract[0]), c.side(n, rhs, at.batch[1], at.contract[1])
	inner := 1
	for _, i := range at.contract[0] {
		inner *= lhs.dims[i]
	}
	return c.single(n.id, n.shape, []view{a.v, b.v}, func(out view) step {
		if out.of.kind == dtypes.Float64 {
			return stepFunc(func(r *run) { multiply(r, out, a, b, inner, mulDouble) })
		}
		return stepFunc(func(r *run) { multiply(r, out, a, b, inner, mulSingle) })
	})
}

// matrix is where the elements of a matrix lie: (i, j) is i*row + j*col elements behind p.
type matrix struct {
	p        unsafe.Pointer
	row, col int
}

// multiply computes c = a b for each element of the batch.
func multiply(r *run, out view, a, b side, inner int, mul func(c unsafe.Pointer, a, b matrix, m, n, k int)) {
	m, n := a.rows, b.rows
	r.device.pool.For(len(a.batch), func(i int) {
		mul(r.ptr(out, i*m*n), matrix{r.ptr(a.v, a.batch[i]), a.row, a.inner}, matrix{r.ptr(b.v, b.batch[i]), b.inner, b.row}, m, n, inner)
	})
}

func mulDouble(c unsafe.Pointer, a, b matrix, m, n, k int) {
	out := list[float64](c, m*n)
	clear(out)
	for i := range m {
		for l := range k {
			x := *(*float64)(unsafe.Add(a.p, 8*(i*a.row+l*a.col)))
			for j := range n {
				out[i*n+j] = math.FMA(x, *(*float64)(unsafe.Add(b.p, 8*(l*b.row+j*b.col))), out[i*n+j])
			}
		}
	}
}

func mulSingle(c unsafe.Pointer, a, b matrix, m, n, k int) {
	out := list[float32](c, m*n)
	clear(out)
	for i := range m {
		for l := range k {
			x := float64(*(*float32)(unsafe.Add(a.p, 4*(i*a.row+l*a.col))))
			for j := range n {
				out[i*n+j] = float32(x*float64(*(*float32)(unsafe.Add(b.p, 4*(l*b.row+j*b.col)))) + float64(out[i*n+j]))
			}
		}
	}
}
