package cpu

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
)

// newStep returns the step of an operation that is neither a view nor fused.
func newStep(n *node, out view, in []view) step {
	switch n.op {
	case compute.OpTypeConcatenate:
		return newConcat(n.attr.(axisAttr).axis, out, in)
	case compute.OpTypePad:
		return newPad(n.attr.(padAttr).axes, out, in[0], in[1])
	case compute.OpTypeIota:
		return &iotaStep{result: result{out}, axis: n.attr.(axisAttr).axis}
	case compute.OpTypeArgMinMax:
		at := n.attr.(argMinMaxAttr)
		return &argMinMaxStep{
			result: result{out}, x: in[0], axis: at.axis, isMin: at.isMin, offsets: in[0].without(at.axis).offsets(),
		}
	case compute.OpTypeCumSum:
		at := n.attr.(cumSumAttr)
		return &cumSumStep{
			result: result{out}, x: in[0], axis: at.axis, options: at.options,
			to: out.without(at.axis).offsets(), from: in[0].without(at.axis).offsets(),
		}
	case compute.OpTypeGather:
		return newGather(n.attr.(gatherAttr), out, in[0], in[1])
	case compute.OpTypeScatterSum, compute.OpTypeScatterMax, compute.OpTypeScatterMin:
		return newScatter(n.op, n.attr.(scatterAttr), out, in)
	case compute.OpTypeDynamicSlice:
		return &dynamicSliceStep{result: result{out}, x: in[0], starts: in[1:]}
	case compute.OpTypeDynamicUpdateSlice:
		return &dynamicUpdateStep{
			update: newUpdate(out, in), with: in[1], starts: in[2:],
			move: newMove(view{of: out.of, dims: in[1].dims, strides: out.strides}, in[1]),
		}
	}
	panic(fmt.Sprintf("no step for %s", n.op))
}

// newUpdate is the update of the first operand.
func newUpdate(out view, in []view) update { return update{result{out}, in[0].collapse(), in[1:]} }

// newConcat concatenates operands. Each is cut along its first axis, so that the workers have equal shares.
func newConcat(ax int, out view, in []view) step {
	s := &concatStep{result: result{out}, in: in}
	at := 0
	for _, x := range in {
		to := view{of: out.of, off: out.off + at*out.strides[ax], dims: x.dims, strides: out.strides}
		at += x.dims[ax]
		for _, p := range cuts(x.dims) {
			a, b := to.slice(p.starts, p.strides, p.dims), x.slice(p.starts, p.strides, p.dims)
			s.parts = append(s.parts, concatPart{newMove(a, b), a, b})
		}
	}
	return s
}

// region is a part of a tensor.
type region struct{ starts, strides, dims []int }

// partElements is the number of elements of a part of an operand.
const partElements = 1 << 15

// cuts divides the first axis longer than one into parts of some size.
func cuts(dims []int) (list []region) {
	ones := slices.Repeat([]int{1}, len(dims))
	ax := max(0, slices.IndexFunc(dims, func(d int) bool { return d > 1 }))
	step := dims[ax]
	if n := volume(dims); n > partElements {
		step = max(1, dims[ax]*partElements/n)
	}
	for at := 0; at < dims[ax]; at += step {
		list = append(list, region{with(make([]int, len(dims)), ax, at), ones, with(dims, ax, min(step, dims[ax]-at))})
	}
	return list
}

// newPad fills the result and copies what is left of the operand over it.
func newPad(axes []compute.PadAxis, out, x, value view) step {
	to := view{of: out.of, off: out.off, dims: slices.Clone(x.dims), strides: slices.Clone(out.strides)}
	ones := slices.Repeat([]int{1}, len(x.dims))
	for i, a := range axes {
		step := a.Interior + 1
		first := 0 // of the elements that stay
		if a.Start < 0 {
			first = (-a.Start + step - 1) / step
		}
		last := x.dims[i]
		for last > first && a.Start+(last-1)*step >= out.dims[i] {
			last--
		}
		x = x.slice(with(make([]int, len(ones)), i, first), ones, with(x.dims, i, max(0, last-first)))
		to.off += (a.Start + first*step) * out.strides[i]
		to.strides[i] *= step
		to.dims[i] = x.dims[i]
	}
	return &padStep{result: result{out}, with: value, to: to, from: x, move: newMove(to, x)}
}

// with returns a copy of a list with another value at i.
func with(list []int, i, value int) []int {
	list = slices.Clone(list)
	list[i] = value
	return list
}
