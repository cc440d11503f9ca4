package cpu

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// A matmul of rows with matrices that are gathered for each of them, such as those of the experts that tokens chose, is
// one operation, which reads the matrices where they are and none that no row has:
//
//	DotGeneral(x [..., inner], Gather(matrices [count, columns, inner], ids [..., 1]))
//
// The rows or the columns of the matrices are contracted. They may be a concatenation of matrices that are parameters,
// packed ones too. Another is the sum of products of rows into the matrices that they have, which is the gradient of
// these:
//
//	ScatterSum(zeros [matrices, rows, columns], ids [..., 1], DotGeneral(y [..., rows], x [..., columns]))

// multiply adds a matmul.
func (f *function) multiply(shape shapes.Shape, at ir.MatmulAttr, in []*ir.Node) (value, error) {
	if list, grouped, ok := f.grouped(in[0], in[1], at); ok {
		return f.add(ir.OpGrouped, shape, grouped, list...)
	}
	return f.add(compute.OpTypeDotGeneral, shape, at, in...)
}

// grouped returns the operands of a matmul of rows with gathered matrices; false: it is another one.
func (f *function) grouped(x, gathered *ir.Node, at ir.MatmulAttr) (in []*ir.Node, attr ir.GroupedAttr, ok bool) {
	g, ok := gathered.Attr.(ir.GatherAttr)
	batch := gathered.Shape.Rank() - 2
	if f.builder.device.unfused || !ok || batch < 1 || gathered.Shape.DType != dtypes.Float32 ||
		x.Shape.Rank() != batch+1 || gathered.Shape.Size() == 0 {
		return nil, attr, false
	}
	all, ids := gathered.In[0], gathered.In[1]
	dims := all.Shape.Dimensions
	if len(dims) != 3 || g.Vector != batch || ids.Shape.Rank() != batch+1 || !slices.Equal(g.Start, []int{0}) ||
		!slices.Equal(g.Collapsed, []int{0}) || !slices.Equal(g.Size, []int{1, dims[1], dims[2]}) ||
		!slices.Equal(g.Offsets, []int{batch, batch + 1}) || !ofRows(at, batch) || len(at.Contract[1]) != 1 {
		return nil, attr, false
	}
	attr.Transposed = at.Contract[1][0] == batch
	return append([]*ir.Node{x, ids}, matricesOf(all)...), attr, true
}

// ofRows reports whether the batch of a matmul is the first axes of both operands, so many of them.
func ofRows(at ir.MatmulAttr, batch int) bool {
	for i := range batch {
		if len(at.Batch[0]) != batch || at.Batch[0][i] != i || at.Batch[1][i] != i {
			return false
		}
	}
	return true
}

// matricesOf returns the matrices that are concatenated along a new axis, or what has all of them.
func matricesOf(all *ir.Node) []*ir.Node {
	if all.Op != compute.OpTypeConcatenate || all.Attr.(ir.AxisAttr).Axis != 0 {
		return []*ir.Node{all}
	}
	list := make([]*ir.Node, len(all.In))
	for i, x := range all.In {
		if x.Op != compute.OpTypeReshape || x.Shape.Dimensions[0] != 1 ||
			!slices.Equal(x.In[0].Shape.Dimensions, x.Shape.Dimensions[1:]) {
			return []*ir.Node{all}
		}
		list[i] = unconverted(x.In[0])
	}
	return list
}

// groupedOuter returns the operands of a sum of products of rows; false: the scatter is another one.
func (f *function) groupedOuter(values [3]value, at ir.ScatterAttr) (in []*ir.Node, ok bool) {
	list, err := f.operands(values[:]...)
	if err != nil || f.builder.device.unfused {
		return nil, false
	}
	to, ids, products := list[0], list[1], list[2]
	m, ok := products.Attr.(ir.MatmulAttr)
	batch := products.Shape.Rank() - 2
	if !ok || batch < 1 || to.Shape.Rank() != 3 || products.Shape.DType != dtypes.Float32 || products.Shape.Size() == 0 ||
		!isZero(to) || !ids.Shape.DType.IsInt() || at.Vector != batch || ids.Shape.Rank() != batch+1 ||
		ids.Shape.Dimensions[batch] != 1 ||
		!slices.Equal(at.Window, []int{batch, batch + 1}) || !slices.Equal(at.Inserted, []int{0}) ||
		!slices.Equal(at.Target, []int{0}) || !ofRows(m, batch) || len(m.Contract[0]) != 0 ||
		!slices.Equal(to.Shape.Dimensions[1:], products.Shape.Dimensions[batch:]) ||
		products.In[0].Shape.Rank() != batch+1 || products.In[1].Shape.Rank() != batch+1 {
		return nil, false
	}
	return []*ir.Node{products.In[1], ids, products.In[0]}, true
}

// isZero reports whether x is zeros, which a constant of one number was broadcast to.
func isZero(x *ir.Node) bool {
	for x.Op == compute.OpTypeBroadcastInDim || x.Op == compute.OpTypeReshape {
		x = x.In[0]
	}
	c, ok := x.Attr.(ir.ConstantAttr)
	return ok && x.Shape.Size() == 1 && !slices.ContainsFunc(c.Data, func(b byte) bool { return b != 0 })
}
