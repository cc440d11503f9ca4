package cpu

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
)

// newDot multiplies. The axes of a side are the batch, those it keeps, and the contracted ones.
func newDot(at product, out, lhs, rhs view) step {
	a, b := arrange(lhs, at.batch[0], at.contract[0]), arrange(rhs, at.batch[1], at.contract[1])
	switch out.of.kind {
	case dtypes.Float32:
		return dotStep(out, a, b, func(r *run, off int) float64 { return float64(*(*float32)(r.ptr(a.all, off))) },
			func(r *run, off int) float64 { return float64(*(*float32)(r.ptr(b.all, off))) },
			func(r *run, i int, x float64) { *(*float32)(r.ptr(out, i)) = float32(x) })
	}
	return dotStep(out, a, b, func(r *run, off int) float64 { return *(*float64)(r.ptr(a.all, off)) },
		func(r *run, off int) float64 { return *(*float64)(r.ptr(b.all, off)) },
		func(r *run, i int, x float64) { *(*float64)(r.ptr(out, i)) = x })
}

// side is an operand of a product.
type side struct {
	all                view
	batch, keep, inner []int // offsets of the positions of each kind of axes, relative to one another
}

func arrange(v view, batch, contract []int) side {
	var keep []int
	for i := range v.dims {
		if !slices.Contains(batch, i) && !slices.Contains(contract, i) {
			keep = append(keep, i)
		}
	}
	part := func(axes []int, off int) []int {
		p := v.transpose(axes)
		p.off = off
		return offsetsOf(p)
	}
	return side{v, part(batch, v.off), part(keep, 0), part(contract, 0)}
}

// dotStep computes each element as one sum in the order of the contracted axes.
func dotStep(out view, a, b side, left, right func(r *run, off int) float64, set func(r *run, i int, x float64)) step {
	m, n := len(a.keep), len(b.keep)
	return stepFunc(func(r *run) {
		r.device.pool.For(len(a.batch)*m, func(row int) {
			base, other := a.batch[row/m]+a.keep[row%m], b.batch[row/m]
			for j := range n {
				sum := 0.0
				for k, off := range a.inner {
					sum += left(r, base+off) * right(r, other+b.keep[j]+b.inner[k])
				}
				set(r, row*n+j, sum)
			}
		})
	})
}
