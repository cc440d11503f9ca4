package cpu

import (
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
)

// side is an operand of a product: a matrix for each element of the batch.
type side struct {
	v          view  // what is read, with the axes of the batch in front
	batch      []int // strides of the axes of the batch
	rows       int   // elements of the axes that are kept
	row, inner int   // strides of rows, and of the contracted axes
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
	shape := []int{volume(v.dims[b:k]), volume(v.dims[k:])}
	m, ok := v.after(b).reshape(shape)
	if !ok || slices.ContainsFunc(v.strides, func(s int) bool { return s < 0 }) {
		v = c.copy(v, shapes.Make(v.of.kind, v.dims...), n.id)
		m, _ = v.after(b).reshape(shape)
	}
	return side{v: v, batch: v.strides[:b], rows: shape[0], row: m.strides[0], inner: m.strides[1]}
}

// after returns v without its first axes.
func (v view) after(n int) view {
	return view{of: v.of, off: v.off, dims: v.dims[n:], strides: v.strides[n:]}
}

// product lowers a product of matrices.
func (c *compiler) product(n *node, lhs, rhs view) view {
	at := n.attr.(product)
	a, b := c.side(n, lhs, at.batch[0], at.contract[0]), c.side(n, rhs, at.batch[1], at.contract[1])
	d := dot{kernels: c.device.kernels, a: a, b: b, inner: 1, half: rhs.of.kind == dtypes.BFloat16}
	d.contractsRows = d.half && at.contract[1][0] == 0
	for _, i := range at.contract[0] {
		d.inner *= lhs.dims[i]
	}
	count := 1
	d.axes = make([]gemm.Axis, len(a.batch))
	for i := len(a.batch) - 1; i >= 0; i-- {
		d.axes[i] = gemm.Axis{N: a.v.dims[i], A: a.batch[i], B: b.batch[i], C: count * a.rows * b.rows}
		count *= a.v.dims[i]
	}
	return c.single(n.id, n.shape, []view{a.v, b.v}, func(out view) step {
		d.out = out
		return d
	})
}

// turnProducts lets products that are only read as transposed outputs, as gradients of weights are, change their operands: what they
// write is the output then. A multiply-add is the same either way.
func (c *compiler) turnProducts(outputs []*node) {
	readers, uses := c.readers(), map[*tensor]int{}
	for _, n := range outputs {
		uses[c.values[n].of]++
	}
	for _, n := range outputs {
		v := c.values[n]
		t := v.of
		if t.writer == nil || uses[t] > 1 || len(readers[t]) > 0 {
			continue
		}
		if d, ok := t.writer.step.(dot); ok && d.turns(v) {
			d.a, d.b = d.b, d.a
			d.out = whole(t, []int{d.a.rows, d.b.rows})
			t.writer.step, c.values[n] = d, whole(t, v.dims)
		}
	}
}

// turns reports whether v is the transposed product, and each operand may be the other.
func (d *dot) turns(v view) bool {
	c := v.collapse()
	return len(d.axes) == 0 && !d.half && !d.mayBePacked() && c.off == 0 &&
		slices.Equal(c.dims, []int{d.b.rows, d.a.rows}) && slices.Equal(c.strides, []int{1, d.b.rows})
}

// dot is a product of matrices, for each element of a batch.
type dot struct {
	kernels  *gemm.Kernels
	out      view
	a, b     side
	inner    int
	axes     []gemm.Axis
	gathered *gathered // of a chain: the right operand, where it lies

	half, contractsRows bool // the right operand is of bfloat16; and its rows are contracted rather than its columns
}

func (d dot) run(r *run) {
	if d.out.of.kind == dtypes.Float64 {
		d.double(r)
		return
	}
	out := list[float32](r.ptr(d.out, 0), d.out.of.count)
	if w := r.packed[d.b.v.of.id]; w != nil {
		a := gemm.View{Data: from[float32](r, d.a.v), Row: d.a.row, Col: d.a.inner}
		if d.b.inner == 1 {
			d.kernels.MulPacked(r.device.pool, out, d.b.rows, a, w, d.a.rows, false)
		} else {
			d.kernels.MulPackedT(r.device.pool, out, d.b.rows, a, w, d.a.rows, false)
		}
		return
	}
	if d.half {
		d.widening(r, r.device.pool, out, d.b.rows, gemm.View{Data: from[float32](r, d.a.v), Row: d.a.row, Col: d.a.inner}, d.a.rows)
		return
	}
	d.kernels.MulBatch(r.device.pool, d.axes, out, d.b.rows,
		gemm.View{Data: from[float32](r, d.a.v), Row: d.a.row, Col: d.a.inner},
		gemm.View{Data: from[float32](r, d.b.v), Row: d.b.inner, Col: d.b.row}, d.a.rows, d.b.rows, d.inner, false)
}

// readsPacked: a packed [rows, columns] matrix is the right operand, and its columns or its rows are contracted.
func (d dot) readsPacked(v view) bool {
	if len(d.axes) > 0 || v.of != d.b.v.of || v.of == d.a.v.of || v.off != 0 {
		return false
	}
	rows, columns := v.of.matrix[0], v.of.matrix[1]
	return d.b.rows == rows && d.inner == columns && d.b.row == columns && d.b.inner == 1 ||
		d.b.rows == columns && d.inner == rows && d.b.row == 1 && d.b.inner == columns
}

// from returns the elements of a tensor from the first one of a view on.
func from[T any](r *run, v view) []T { return list[T](r.ptr(v, v.off), v.of.count-v.off) }

// double multiplies in double precision, for tests.
func (d dot) double(r *run) {
	n := d.a.rows * d.b.rows
	if n == 0 {
		return
	}
	r.device.pool.For(d.out.of.count/n, func(i int) {
		out := list[float64](r.ptr(d.out, i*n), n)
		a, b := from[float64](r, d.a.v), from[float64](r, d.b.v)
		for k := len(d.axes) - 1; k >= 0; k-- {
			at := i % d.axes[k].N
			i /= d.axes[k].N
			a, b = a[at*d.axes[k].A:], b[at*d.axes[k].B:]
		}
		for j := range out {
			x, y := j/d.b.rows*d.a.row, j%d.b.rows*d.b.row
			out[j] = 0
			for k := range d.inner {
				out[j] = math.FMA(a[x+k*d.a.inner], b[y+k*d.b.inner], out[j])
			}
		}
	})
}
