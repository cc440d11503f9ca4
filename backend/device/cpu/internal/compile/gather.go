package compile

import (
	"slices"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// newIndexing splits indices into a batch of vectors. vector may be the rank: then each index is a vector of one.
func newIndexing(indices ir.View, vector int, axes []int) ir.Indexing {
	x := ir.Indexing{Indices: indices, Axes: axes, Component: 1}
	if vector < len(indices.Dims) {
		x.Stride, x.Component = indices.Strides[vector], indices.Dims[vector]
		x.Indices = indices.Without(vector)
	}
	x.Batch = x.Indices.Dims
	return x
}

// newGather copies a window of the operand for each index vector.
func newGather(at ir.GatherAttr, out, operand, indices ir.View) ir.Step {
	window := ir.View{Of: operand.Of, Strides: []int{}, Dims: []int{}}
	for i := range operand.Dims {
		if !slices.Contains(at.Collapsed, i) {
			window.Dims = append(window.Dims, at.Size[i])
			window.Strides = append(window.Strides, operand.Strides[i])
		}
	}
	to, batch := split(out, at.Offsets)
	x := newIndexing(indices, at.Vector, at.Start)
	s := &ir.Gather{
		Result: ir.Result{Out: out}, Operand: operand, Index: x,
		From: ir.NewOffsets(x.Indices), To: ir.NewOffsets(batch), Size: at.Size,
		Window: ir.NewMove(to, window),
	}
	s.Rows = len(operand.Dims) == 2 && at.OfRows(operand.Dims[1], len(out.Dims))
	s.Members = slices.Equal(x.Axes, []int{0}) && x.Component == 1 && len(x.Batch) == 1 &&
		slices.Equal(at.Collapsed, []int{0}) && slices.Equal(at.Size[1:], operand.Dims[1:]) &&
		slices.Equal(out.Dims[1:], operand.Dims[1:]) && slices.Equal(operand.Strides, ir.RowMajor(operand.Dims))
	return s
}

// split returns the axes of a view that are listed, without its offset, and the others.
func split(v ir.View, axes []int) (listed, others ir.View) {
	listed.Of, others.Of = v.Of, v.Of
	for i := range v.Dims {
		part := &others
		if slices.Contains(axes, i) {
			part = &listed
		}
		part.Dims = append(part.Dims, v.Dims[i])
		part.Strides = append(part.Strides, v.Strides[i])
	}
	return listed, others
}

// newScatter copies the operand and combines a window of it with each update, in the order of the updates.
func newScatter(op compute.OpType, at ir.ScatterAttr, out ir.View, in []ir.View) ir.Step {
	updates := in[2]
	x := newIndexing(in[1], at.Vector, at.Target)
	window, batch := split(updates, at.Window)
	batch.Off = updates.Off
	to := ir.View{Of: out.Of, Dims: window.Dims} // of the output
	size := slices.Repeat([]int{1}, len(out.Dims))
	for i := range out.Dims {
		if !slices.Contains(at.Inserted, i) {
			size[i] = window.Dims[len(to.Strides)]
			to.Strides = append(to.Strides, out.Strides[i])
		}
	}
	return &ir.Scatter{
		Update: newUpdate(out, in), Op: op, Replaces: at.Replaces, Index: x, Updates: updates, Size: size,
		From: ir.NewOffsets(x.Indices), At: ir.NewOffsets(batch), Runs: ir.NewRuns(to, window),
	}
}
