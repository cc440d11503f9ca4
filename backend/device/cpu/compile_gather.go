package cpu

import (
	"slices"

	"github.com/gomlx/compute"
)

// newIndexing splits indices into a batch of vectors. vector may be the rank: then each index is a vector of one.
func newIndexing(indices view, vector int, axes []int) indexing {
	x := indexing{indices: indices, axes: axes, component: 1}
	if vector < len(indices.dims) {
		x.stride, x.component = indices.strides[vector], indices.dims[vector]
		x.indices = indices.without(vector)
	}
	x.batch = x.indices.dims
	return x
}

// newGather copies a window of the operand for each index vector.
func newGather(at gatherAttr, out, operand, indices view) step {
	window := view{of: operand.of, strides: []int{}, dims: []int{}}
	for i := range operand.dims {
		if !slices.Contains(at.collapsed, i) {
			window.dims = append(window.dims, at.size[i])
			window.strides = append(window.strides, operand.strides[i])
		}
	}
	to, batch := split(out, at.offsets)
	x := newIndexing(indices, at.vector, at.start)
	s := &gatherStep{
		result: result{out}, operand: operand, index: x, from: x.indices.offsets(), to: batch.offsets(), size: at.size,
		window: newMove(to, window),
	}
	s.rows = len(operand.dims) == 2 && at.ofRows(operand.dims[1], len(out.dims))
	s.members = slices.Equal(x.axes, []int{0}) && x.component == 1 && len(x.batch) == 1 &&
		slices.Equal(at.collapsed, []int{0}) && slices.Equal(at.size[1:], operand.dims[1:]) &&
		slices.Equal(out.dims[1:], operand.dims[1:]) && slices.Equal(operand.strides, rowMajor(operand.dims))
	return s
}

// split returns the axes of a view that are listed, without its offset, and the others.
func split(v view, axes []int) (listed, others view) {
	listed.of, others.of = v.of, v.of
	for i := range v.dims {
		part := &others
		if slices.Contains(axes, i) {
			part = &listed
		}
		part.dims = append(part.dims, v.dims[i])
		part.strides = append(part.strides, v.strides[i])
	}
	return listed, others
}

// newScatter copies the operand and combines a window of it with each update, in the order of the updates.
func newScatter(op compute.OpType, at scatterAttr, out view, in []view) step {
	updates := in[2]
	x := newIndexing(in[1], at.vector, at.target)
	window, batch := split(updates, at.window)
	batch.off = updates.off
	to := view{of: out.of, dims: window.dims} // of the output
	size := slices.Repeat([]int{1}, len(out.dims))
	for i := range out.dims {
		if !slices.Contains(at.inserted, i) {
			size[i] = window.dims[len(to.strides)]
			to.strides = append(to.strides, out.strides[i])
		}
	}
	return &scatterStep{
		update: newUpdate(out, in), op: op, index: x, updates: updates, size: size,
		from: x.indices.offsets(), at: batch.offsets(), runs: newRuns(to, window),
	}
}
