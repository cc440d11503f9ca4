package cpu

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/exec"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// The operations below move elements, and compute nothing.

// missing says that an operation is not there for a type.
func missing(op compute.OpType, t dtypes.DType) error {
	return fmt.Errorf("cpu: the operation %s is missing for %s: %w", op, t, compute.ErrNotImplemented)
}

func badAxis(op compute.OpType, ax int, s shapes.Shape) error {
	return fmt.Errorf("cpu: %s: there is no axis %d in %s", op, ax, s)
}

// moved adds an operation with the shape that infer returns for its operands.
func (f *function) moved(
	op compute.OpType, attr any, operands []value, infer func(in []*ir.Node) (shapes.Shape, error),
) (value, error) {
	in, err := f.operands(operands...)
	if err != nil {
		return nil, err
	}
	shape, err := infer(in)
	if err != nil {
		return nil, err
	}
	return f.add(op, shape, attr, in...)
}

// moved1 is moved for one operand.
func (f *function) moved1(
	op compute.OpType, attr any, x value, infer func(x shapes.Shape) (shapes.Shape, error),
) (value, error) {
	return f.moved(op, attr, []value{x}, func(in []*ir.Node) (shapes.Shape, error) { return infer(in[0].Shape) })
}

// Identity returns its operand.
func (f *function) Identity(x value) (value, error) {
	return f.moved1(compute.OpTypeIdentity, nil, x, func(x shapes.Shape) (shapes.Shape, error) { return x, nil })
}

// OptimizationBarrier returns its operands.
func (f *function) OptimizationBarrier(operands ...value) ([]value, error) {
	_, err := f.operands(operands...)
	return slices.Clone(operands), err
}

// SchedulingBarrier returns its operand, as something that is there when the dependencies are.
func (f *function) SchedulingBarrier(x value, dependencies ...value) (value, error) {
	in, err := f.operands(append([]value{x}, dependencies...)...)
	if err != nil || len(dependencies) == 0 {
		return x, err
	}
	return f.add(compute.OpTypeSchedulingBarrier, in[0].Shape, nil, in...)
}

// Reshape gives the elements, in their order, other axes.
func (f *function) Reshape(x value, dims ...int) (value, error) {
	return f.moved1(compute.OpTypeReshape, nil, x, func(x shapes.Shape) (shapes.Shape, error) {
		return shapeinference.Reshape(x, dims)
	})
}

// Transpose reorders axes.
func (f *function) Transpose(x value, axes ...int) (value, error) {
	attr := ir.TransposeAttr{Axes: slices.Clone(axes)}
	return f.moved1(compute.OpTypeTranspose, attr, x, func(x shapes.Shape) (shapes.Shape, error) {
		return shapeinference.Transpose(x, axes)
	})
}

// BroadcastInDim repeats the operand.
func (f *function) BroadcastInDim(x value, shape shapes.Shape, axes []int) (value, error) {
	attr := ir.BroadcastAttr{Axes: slices.Clone(axes)}
	return f.moved1(compute.OpTypeBroadcastInDim, attr, x, func(x shapes.Shape) (shapes.Shape, error) {
		return shapes.Make(x.DType, shape.Dimensions...), shapeinference.BroadcastInDim(x, shape, axes, nil)
	})
}

// Slice takes every stride-th element between starts and limits.
func (f *function) Slice(x value, starts, limits, strides []int) (value, error) {
	if len(strides) == 0 {
		strides = slices.Repeat([]int{1}, len(starts))
	}
	attr := ir.SliceAttr{Starts: slices.Clone(starts), Strides: slices.Clone(strides)}
	return f.moved1(compute.OpTypeSlice, attr, x, func(x shapes.Shape) (shapes.Shape, error) {
		return shapeinference.Slice(x, starts, limits, strides)
	})
}

// Reverse reverses the order of the elements of axes.
func (f *function) Reverse(v value, axes ...int) (value, error) {
	attr := ir.ReverseAttr{Axes: slices.Clone(axes)}
	return f.moved1(compute.OpTypeReverse, attr, v, func(x shapes.Shape) (shapes.Shape, error) {
		for _, ax := range axes {
			if ax < 0 || ax >= x.Rank() {
				return x, badAxis(compute.OpTypeReverse, ax, x)
			}
		}
		return x, nil
	})
}

// Concatenate puts operands one after another along an axis.
func (f *function) Concatenate(ax int, operands ...value) (value, error) {
	attr := ir.AxisAttr{Axis: ax}
	return f.moved(compute.OpTypeConcatenate, attr, operands, func(in []*ir.Node) (shapes.Shape, error) {
		list := make([]shapes.Shape, len(in))
		for i, x := range in {
			list[i] = x.Shape
		}
		return shapeinference.Concatenate(list, ax)
	})
}

// Pad puts a scalar around and between elements. Negative padding takes elements away.
func (f *function) Pad(x, fill value, axes ...compute.PadAxis) (value, error) {
	attr := ir.PadAttr{Axes: slices.Clone(axes)}
	return f.moved(compute.OpTypePad, attr, []value{x, fill}, func(in []*ir.Node) (shapes.Shape, error) {
		x, fill := in[0].Shape, in[1].Shape
		shape, err := shapeinference.Pad(x, axes...)
		if err == nil && (!fill.IsScalar() || fill.DType != x.DType) {
			err = fmt.Errorf("cpu: Pad: the fill value of %s is %s, not a scalar of its type", x, fill)
		}
		return shape, err
	})
}

// Gather takes slices of the operand at indices; an index outside is moved to the border.
func (f *function) Gather(
	operand, indices value, vector int, offsets, collapsed, start, sizes []int, _ bool,
) (value, error) {
	in, err := f.operands(operand, indices)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.Gather(in[0].Shape, in[1].Shape, vector, offsets, collapsed, start, sizes, false)
	if err != nil {
		return nil, err
	}
	if !in[1].Shape.DType.IsInt() {
		return nil, missing(compute.OpTypeGather, in[1].Shape.DType)
	}
	attr := ir.GatherAttr{
		Vector: vector, Offsets: slices.Clone(offsets), Collapsed: slices.Clone(collapsed),
		Start: slices.Clone(start), Size: slices.Clone(sizes),
	}
	if p := unconverted(in[0]); p != in[0] && attr.OfRows(p.Shape.Dimensions[1], shape.Rank()) {
		in[0] = p
	}
	return f.add(compute.OpTypeGather, shape, attr, in...)
}

// ScatterSum adds updates to the operand at indices, in the order of the updates. What would lie outside is left out.
func (f *function) ScatterSum(
	operand, indices, updates value, vector int, window, inserted, target []int, _, _ bool,
) (value, error) {
	attr := newScatterAttr(vector, window, inserted, target)
	in := [3]value{operand, indices, updates}
	if list, ok := f.groupedOuter(in, attr); ok {
		return f.add(ir.OpGroupedOuter, operand.(*ir.Node).Shape, nil, list...)
	}
	return f.scatter(compute.OpTypeScatterSum, in, attr)
}

// ScatterMax is like ScatterSum and keeps the greater value. Where minus infinity was the smaller value at the same
// indices before, it replaces what was there, in one step.
func (f *function) ScatterMax(
	operand, indices, updates value, vector int, window, inserted, target []int, _, _ bool,
) (value, error) {
	attr := newScatterAttr(vector, window, inserted, target)
	if low, ok := operand.(*ir.Node); ok && lowers(low, indices, attr) {
		attr.Replaces = true
		operand = low.In[0]
	}
	return f.scatter(compute.OpTypeScatterMax, [3]value{operand, indices, updates}, attr)
}

// ScatterMin is like ScatterSum and keeps the smaller value.
func (f *function) ScatterMin(
	operand, indices, updates value, vector int, window, inserted, target []int, _, _ bool,
) (value, error) {
	attr := newScatterAttr(vector, window, inserted, target)
	return f.scatter(compute.OpTypeScatterMin, [3]value{operand, indices, updates}, attr)
}

// lowers reports whether n sets the elements at indices to minus infinity.
func lowers(n *ir.Node, indices value, at ir.ScatterAttr) bool {
	if n.Op != compute.OpTypeScatterMin || n.In[1] != indices || !reflect.DeepEqual(n.Attr, at) {
		return false
	}
	x := n.In[2]
	for x.Op == compute.OpTypeBroadcastInDim || x.Op == compute.OpTypeReshape {
		x = x.In[0]
	}
	c, ok := x.Attr.(ir.ConstantAttr)
	return ok && x.Shape.DType == dtypes.Float32 && x.Shape.Size() == 1 &&
		math.Float32frombits(binary.NativeEndian.Uint32(c.Data)) == float32(math.Inf(-1))
}

func newScatterAttr(vector int, window, inserted, target []int) ir.ScatterAttr {
	return ir.ScatterAttr{
		Vector: vector, Window: slices.Clone(window), Inserted: slices.Clone(inserted), Target: slices.Clone(target),
	}
}

func (f *function) scatter(op compute.OpType, values [3]value, attr ir.ScatterAttr) (value, error) {
	return f.moved(op, attr, values[:], func(in []*ir.Node) (shapes.Shape, error) {
		shape, err := shapeinference.Scatter(in[0].Shape, in[1].Shape, in[2].Shape, attr.Vector, attr.Window, attr.Inserted,
			attr.Target)
		if err == nil && (!in[1].Shape.DType.IsInt() || !exec.HasScatter(op, shape.DType)) {
			err = missing(op, shape.DType)
		}
		return shape, err
	})
}

// DynamicSlice takes a region whose start is computed; one that would lie outside is moved in.
func (f *function) DynamicSlice(operand value, starts []value, sizes []int) (value, error) {
	const op = compute.OpTypeDynamicSlice
	return f.moved(op, nil, append([]value{operand}, starts...), func(in []*ir.Node) (shapes.Shape, error) {
		shape, err := shapeinference.DynamicSlice(in[0].Shape, sizes)
		return shape, cmp.Or(err, checkStarts(op, in[0], in[1:]))
	})
}

// DynamicUpdateSlice replaces a region whose start is computed; one that would lie outside is moved in.
func (f *function) DynamicUpdateSlice(operand, update value, starts []value) (value, error) {
	const op = compute.OpTypeDynamicUpdateSlice
	return f.moved(op, nil, append([]value{operand, update}, starts...), func(in []*ir.Node) (shapes.Shape, error) {
		shape, err := shapeinference.DynamicUpdateSlice(in[0].Shape, in[1].Shape)
		return shape, cmp.Or(err, checkStarts(op, in[0], in[2:]))
	})
}

// checkStarts wants one integer for each axis.
func checkStarts(op compute.OpType, operand *ir.Node, starts []*ir.Node) error {
	if len(starts) != operand.Shape.Rank() {
		return fmt.Errorf("cpu: %s: %d start indices for %s", op, len(starts), operand.Shape)
	}
	for _, s := range starts {
		if !s.Shape.IsScalar() || !s.Shape.DType.IsInt() {
			return fmt.Errorf("cpu: %s: a start index is %s, not an integer", op, s.Shape)
		}
	}
	return nil
}
