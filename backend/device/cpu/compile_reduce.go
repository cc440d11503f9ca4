package cpu

import (
	"slices"

	"github.com/gomlx/compute/shapes"
)

// reduction lowers a reduction: of the last axes it is fused, of others it is a unit. The order of the additions follows
// from the axes alone, not from where the elements are, which depends on what was fused.
func (c *compiler) reduction(n *node, x view) view {
	axes := n.attr.(reduceAttr).axes
	if volume(x.dims) == 0 {
		return c.single(n.id, n.shape, nil, func(out view) step { return &fillStep{result: result{out}, op: n.op} })
	}
	var kept []int
	inner := 1
	for i, d := range x.dims {
		if slices.Contains(axes, i) {
			inner *= d
		} else {
			kept = append(kept, i)
		}
	}
	switch {
	case inner == 1:
		x = x.transpose(append(slices.Clone(kept), axes...))
		x.dims, x.strides = x.dims[:len(kept)], x.strides[:len(kept)]
		return x
	case trailing(x, axes):
		if n.shape.Size() == 1 && inner > sumChunk {
			return c.reduceAll(n, x)
		}
		return c.fuseRows(n, x, inner)
	}
	if kept := longer(x, kept); kept[len(kept)-1] > slices.Max(longer(x, axes)) {
		return c.single(n.id, n.shape, []view{x}, func(out view) step { return newReduceColumns(n, out, x, kept) })
	}
	rows := x.transpose(append(slices.Clone(kept), axes...))
	rows = c.copy(rows, shapes.Make(n.shape.DType, rows.dims...), n.id)
	return c.fuseRows(n, rows, inner)
}

// longer returns the axes of more than one element.
func longer(x view, axes []int) []int {
	return slices.DeleteFunc(slices.Clone(axes), func(i int) bool { return x.dims[i] == 1 })
}

// trailing reports whether axes are the last ones, but for axes of one element.
func trailing(x view, axes []int) bool {
	reduced := false
	for i, d := range x.dims {
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

// newReduceColumns reduces all but the kept axes.
func newReduceColumns(n *node, out, x view, kept []int) step {
	last := kept[len(kept)-1]
	outer := x.transpose(kept[:len(kept)-1])
	outer.off = 0
	return &reduceColumnsStep{
		result: result{out}, op: n.op, x: x, groups: outer.offsets(),
		rows: x.transpose(n.attr.(reduceAttr).axes).offsets(), width: x.dims[last], stride: x.strides[last],
	}
}

// reduceAll reduces a long row to one number: the pieces of the row by all workers, then what they gave.
func (c *compiler) reduceAll(n *node, x view) view {
	if !x.contiguous() {
		x = c.copy(x, shapes.Make(n.shape.DType, x.dims...), n.id)
	}
	count := volume(x.dims)
	pieces := ceilDiv(count, sumChunk)
	parts := c.single(n.id, shapes.Make(n.shape.DType, pieces), []view{x}, func(out view) step {
		return &reduceRowStep{result: result{out}, op: n.op, x: x, count: count, each: sumChunk}
	})
	return c.single(n.id, n.shape, []view{parts}, func(out view) step {
		return &reduceRowStep{result: result{out}, op: n.op, x: parts, count: pieces, each: pieces}
	})
}
