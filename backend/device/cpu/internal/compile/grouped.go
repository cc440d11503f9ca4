package compile

import (
	"slices"

	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// groupedNumbers is how many numbers of rows a grouped matmul copies at once, if they are a fixed block at least.
const groupedNumbers = 1 << 22

// grouped lowers a matmul of rows with matrices of their own.
func (c *compiler) grouped(n *ir.Node, x, ids ir.View, matrices []ir.View) ir.View {
	at := n.Attr.(ir.GroupedAttr)
	s := &ir.Grouped{Transposed: at.Transposed}
	s.Grouping = c.grouping(n, x, ids)
	for _, v := range matrices {
		if slices.ContainsFunc(v.Strides, func(s int) bool { return s < 0 }) {
			v = c.copy(v, shapes.Make(v.Of.DType, v.Dims...), n.ID)
		}
		if len(v.Dims) == 2 {
			s.Matrices = append(s.Matrices, v)
			continue
		}
		for e := range v.Dims[0] {
			s.Matrices = append(s.Matrices, ir.View{
				Of: v.Of, Off: v.Off + e*v.Strides[0], Dims: v.Dims[1:], Strides: v.Strides[1:],
			})
		}
	}
	columns := n.Shape.Dimensions[n.Shape.Rank()-1]
	return c.inChunks(n, s, &s.Grouping, columns, func(out ir.View) ir.Step {
		s.Out = out
		return s
	})
}

// groupedOuter lowers the gradient of such matrices.
func (c *compiler) groupedOuter(n *ir.Node, x, ids, y ir.View) ir.View {
	s := &ir.GroupedOuter{Grouping: c.grouping(n, x, ids), Y: c.rows(n, y)}
	return c.inChunks(n, s, &s.Grouping, s.Y.Width, func(out ir.View) ir.Step {
		s.Out = out
		return s
	})
}

func (c *compiler) grouping(n *ir.Node, x, ids ir.View) ir.Grouping {
	g := ir.Grouping{X: c.rows(n, x), IDs: c.rows(n, ids)}
	g.Count = g.X.At.Len()
	return g
}

// rows are those along the last axis of v, which is copied unless their numbers follow one another.
func (c *compiler) rows(n *ir.Node, v ir.View) ir.Rows {
	if last := len(v.Dims) - 1; v.Strides[last] != 1 && v.Dims[last] > 1 {
		v = c.copy(v, shapes.Make(v.Of.DType, v.Dims...), n.ID)
	}
	return ir.NewRows(v)
}

// inChunks adds a unit of a grouped step, with memory for some of its rows, which have so many numbers besides those
// of x.
func (c *compiler) inChunks(
	n *ir.Node, s ir.Step, g *ir.Grouping, others int, make func(out ir.View) ir.Step,
) ir.View {
	each := max(1, g.X.Width+others)
	g.Chunk = min(g.Count, max(1, groupedNumbers/each/gemm.Block)*gemm.Block)
	v := c.single(n.ID, n.Shape, s.Reads(), make)
	g.Space = c.scratch(c.writer(v.Of), g.Chunk*each)
	return v
}
