package compile

import (
	"slices"

	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// reduction lowers a reduction: of the last axes it is fused, of others it is a unit. The order of the additions
// follows from the axes alone, not from where the elements are, which depends on what was fused.
func (c *compiler) reduction(n *ir.Node, x ir.View) ir.View {
	axes := n.Attr.(ir.ReduceAttr).Axes
	if ir.Volume(x.Dims) == 0 {
		return c.single(n.ID, n.Shape, nil, func(out ir.View) ir.Step {
			return &ir.Fill{Result: ir.Result{Out: out}, Op: n.Op}
		})
	}
	var kept []int
	inner := 1
	for i, d := range x.Dims {
		if slices.Contains(axes, i) {
			inner *= d
		} else {
			kept = append(kept, i)
		}
	}
	switch {
	case inner == 1:
		x = x.Transpose(append(slices.Clone(kept), axes...))
		x.Dims, x.Strides = x.Dims[:len(kept)], x.Strides[:len(kept)]
		return x
	case trailing(x, axes):
		if n.Shape.Size() == 1 && inner > ir.SumChunk {
			return c.reduceAll(n, x)
		}
		return c.fuseRows(n, x, inner)
	}
	if kept := longer(x, kept); kept[len(kept)-1] > slices.Max(longer(x, axes)) {
		return c.single(n.ID, n.Shape, []ir.View{x}, func(out ir.View) ir.Step {
			last := kept[len(kept)-1]
			outer := x.Transpose(kept[:len(kept)-1])
			outer.Off = 0
			return &ir.ReduceColumns{
				Result: ir.Result{Out: out}, Op: n.Op, X: x, Groups: ir.NewOffsets(outer),
				Rows: ir.NewOffsets(x.Transpose(n.Attr.(ir.ReduceAttr).Axes)), Width: x.Dims[last], Stride: x.Strides[last],
			}
		})
	}
	rows := x.Transpose(append(slices.Clone(kept), axes...))
	rows = c.copy(rows, shapes.Make(n.Shape.DType, rows.Dims...), n.ID)
	return c.fuseRows(n, rows, inner)
}

// longer returns the axes of more than one element.
func longer(x ir.View, axes []int) []int {
	return slices.DeleteFunc(slices.Clone(axes), func(i int) bool { return x.Dims[i] == 1 })
}

// trailing reports whether axes are the last ones, but for axes of one element.
func trailing(x ir.View, axes []int) bool {
	reduced := false
	for i, d := range x.Dims {
		if d == 1 {
			continue
		}
		is := slices.Contains(axes, i)
		if reduced && !is {
			return false
		}
		reduced = is
	}
	return true
}

// reduceAll reduces a long row to one number: the pieces of the row by all workers, then what they gave.
func (c *compiler) reduceAll(n *ir.Node, x ir.View) ir.View {
	if !x.Contiguous() {
		x = c.copy(x, shapes.Make(n.Shape.DType, x.Dims...), n.ID)
	}
	count := ir.Volume(x.Dims)
	pieces := ir.CeilDiv(count, ir.SumChunk)
	parts := c.single(n.ID, shapes.Make(n.Shape.DType, pieces), []ir.View{x}, func(out ir.View) ir.Step {
		return &ir.ReduceRow{Result: ir.Result{Out: out}, Op: n.Op, X: x, Count: count, Each: ir.SumChunk}
	})
	return c.single(n.ID, n.Shape, []ir.View{parts}, func(out ir.View) ir.Step {
		return &ir.ReduceRow{Result: ir.Result{Out: out}, Op: n.Op, X: parts, Count: pieces, Each: pieces}
	})
}
