package compile

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// newStep returns the step of an operation that is neither a view nor fused.
func newStep(n *ir.Node, out ir.View, in []ir.View) ir.Step {
	switch n.Op {
	case compute.OpTypeConcatenate:
		return newConcat(n.Attr.(ir.AxisAttr).Axis, out, in)
	case compute.OpTypePad:
		return newPad(n.Attr.(ir.PadAttr).Axes, out, in[0], in[1])
	case compute.OpTypeIota:
		return &ir.Iota{Result: ir.Result{Out: out}, Axis: n.Attr.(ir.AxisAttr).Axis}
	case compute.OpTypeArgMinMax:
		at := n.Attr.(ir.ArgMinMaxAttr)
		return &ir.ArgMinMax{
			Result: ir.Result{Out: out}, X: in[0], Axis: at.Axis, IsMin: at.IsMin,
			Offsets: ir.NewOffsets(in[0].Without(at.Axis)),
		}
	case compute.OpTypeCumSum:
		at := n.Attr.(ir.CumSumAttr)
		return &ir.CumSum{
			Result: ir.Result{Out: out}, X: in[0], Axis: at.Axis, Options: at.Options,
			To: ir.NewOffsets(out.Without(at.Axis)), From: ir.NewOffsets(in[0].Without(at.Axis)),
		}
	case compute.OpTypeGather:
		return newGather(n.Attr.(ir.GatherAttr), out, in[0], in[1])
	case compute.OpTypeScatterSum, compute.OpTypeScatterMax, compute.OpTypeScatterMin:
		return newScatter(n.Op, n.Attr.(ir.ScatterAttr), out, in)
	case compute.OpTypeDynamicSlice:
		return &ir.DynamicSlice{Result: ir.Result{Out: out}, X: in[0], Starts: in[1:]}
	case compute.OpTypeDynamicUpdateSlice:
		return &ir.DynamicUpdate{
			Update: newUpdate(out, in), With: in[1], Starts: in[2:],
			Move: ir.NewMove(ir.View{Of: out.Of, Dims: in[1].Dims, Strides: out.Strides}, in[1]),
		}
	}
	panic(fmt.Sprintf("no step for %s", n.Op))
}

// newUpdate is the update of the first operand.
func newUpdate(out ir.View, in []ir.View) ir.Update {
	return ir.Update{Result: ir.Result{Out: out}, Operand: in[0].Collapse(), Others: in[1:]}
}

// newConcat concatenates operands. Each is cut along its first axis, so that the workers have equal shares.
func newConcat(ax int, out ir.View, in []ir.View) ir.Step {
	s := &ir.Concat{Result: ir.Result{Out: out}, In: in}
	at := 0
	for _, x := range in {
		to := ir.View{Of: out.Of, Off: out.Off + at*out.Strides[ax], Dims: x.Dims, Strides: out.Strides}
		at += x.Dims[ax]
		for _, p := range cuts(x.Dims) {
			a, b := to.Slice(p.starts, p.strides, p.dims), x.Slice(p.starts, p.strides, p.dims)
			s.Parts = append(s.Parts, ir.ConcatPart{Move: ir.NewMove(a, b), To: a, From: b})
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
	if n := ir.Volume(dims); n > partElements {
		step = max(1, dims[ax]*partElements/n)
	}
	for at := 0; at < dims[ax]; at += step {
		list = append(list, region{with(make([]int, len(dims)), ax, at), ones, with(dims, ax, min(step, dims[ax]-at))})
	}
	return list
}

// newPad fills the result and copies what is left of the operand over it.
func newPad(axes []compute.PadAxis, out, x, value ir.View) ir.Step {
	to := ir.View{Of: out.Of, Off: out.Off, Dims: slices.Clone(x.Dims), Strides: slices.Clone(out.Strides)}
	ones := slices.Repeat([]int{1}, len(x.Dims))
	for i, a := range axes {
		step := a.Interior + 1
		first := 0 // of the elements that stay
		if a.Start < 0 {
			first = (-a.Start + step - 1) / step
		}
		last := x.Dims[i]
		for last > first && a.Start+(last-1)*step >= out.Dims[i] {
			last--
		}
		x = x.Slice(with(make([]int, len(ones)), i, first), ones, with(x.Dims, i, max(0, last-first)))
		to.Off += (a.Start + first*step) * out.Strides[i]
		to.Strides[i] *= step
		to.Dims[i] = x.Dims[i]
	}
	return &ir.Pad{Result: ir.Result{Out: out}, With: value, To: to, From: x, Move: ir.NewMove(to, x)}
}

// with returns a copy of a list with another value at i.
func with(list []int, i, value int) []int {
	list = slices.Clone(list)
	list[i] = value
	return list
}
