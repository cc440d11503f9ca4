package cpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// A graph reaches the operations that GoMLX lacks through its functions: a function of the name of an operation, and a
// dot and what makes the name its own behind it, declares the shapes of operands and results, and is never run.

// operations are those that are called by name: each returns the shapes of the results for those of its operands.
var operations = map[string]func(in []shapes.Shape) ([]shapes.Shape, error){
	ir.DeltaRuleName: deltaShapes, ir.DeltaRuleGradientName: deltaGradientShapes,
}

// HasOperation reports whether the device has an operation that is called by name.
func (d *Device) HasOperation(name string) bool { return operations[name] != nil }

// NewFunction declares an operation of the device, whose name is that of the function up to its last dot.
func (b *builder) NewFunction(name string) (compute.Function, error) {
	operation := name[:max(0, strings.LastIndexByte(name, '.'))]
	if operations[operation] == nil {
		return nil, fmt.Errorf("cpu: function %q: functions are missing, and this is no operation: %w", name,
			compute.ErrNotImplemented)
	}
	f := newFunction(b)
	f.operation = operation
	b.declared = append(b.declared, f)
	return f, nil
}

// Call adds the operation that a function declares.
func (f *function) Call(target compute.Function, values ...value) ([]value, error) {
	declared, ok := target.(*function)
	if !ok || declared.builder != f.builder || declared.operation == "" {
		return nil, fmt.Errorf("cpu: Call of %v, which is no function of this computation", target)
	}
	in, err := f.operands(values...)
	if err != nil {
		return nil, err
	}
	results, err := operations[declared.operation](shapesOf(in))
	if err != nil {
		return nil, fmt.Errorf("cpu: %s: %w", declared.operation, err)
	}
	if !slices.EqualFunc(results, shapesOf(declared.outputs), shapes.Shape.Equal) {
		return nil, fmt.Errorf("cpu: %s of %v is declared as %v, it is %v", declared.operation, shapesOf(in),
			shapesOf(declared.outputs), results)
	}
	first, err := f.add(compute.OpTypeCall, results[0], ir.CallAttr{Name: declared.operation, Results: results}, in...)
	list := []value{first}
	for i := 1; err == nil && i < len(results); i++ {
		var v value
		v, err = f.add(compute.OpTypeCall, results[i], ir.ResultAttr{Number: i}, first.(*ir.Node))
		list = append(list, v)
	}
	return list, err
}

func shapesOf(nodes []*ir.Node) []shapes.Shape {
	list := make([]shapes.Shape, len(nodes))
	for i, n := range nodes {
		list[i] = n.Shape
	}
	return list
}

// matches returns an error unless a shape has these dimensions.
func matches(what string, s shapes.Shape, t dtypes.DType, dims ...int) error {
	if want := shapes.Make(t, dims...); !s.Equal(want) {
		return fmt.Errorf("%s is %s, want %s", what, s, want)
	}
	return nil
}

// deltaShapes checks queries and keys [B, T, G, K], values [B, T, H, V], decays and rates [B, T, H], counts [B] and
// states [B, H, K, V], or [slots, H, K, V] with two slots of each row [B].
func deltaShapes(in []shapes.Shape) ([]shapes.Shape, error) {
	if len(in) != 7 && len(in) != 9 {
		return nil, fmt.Errorf("%d operands, want 7, or 9 with slots", len(in))
	}
	k, v := in[1], in[2]
	if k.Rank() != 4 || v.Rank() != 4 || k.Size() == 0 || v.Size() == 0 || v.Dim(2)%k.Dim(2) != 0 {
		return nil, fmt.Errorf("keys are %s and values %s, want [B, T, G, K] and [B, T, H, V], where G divides H", k, v)
	}
	b, t, h := v.Dim(0), v.Dim(1), v.Dim(2)
	const number = dtypes.Float32
	states := shapes.Make(number, b, h, k.Dim(3), v.Dim(3))
	list := []error{
		matches("the query", in[0], number, k.Dimensions...), matches("the key", k, number, b, t, k.Dim(2), k.Dim(3)),
		matches("the value", v, number, v.Dimensions...), matches("the decay", in[3], number, b, t, h),
		matches("the rate", in[4], number, b, t, h), matches("the count", in[5], dtypes.Int32, b),
	}
	switch {
	case len(in) == 9:
		if in[6].Rank() > 0 {
			states.Dimensions[0] = in[6].Dim(0)
		}
		list = append(list, matches("the first slot", in[7], dtypes.Int32, b),
			matches("the second slot", in[8], dtypes.Int32, b), matches("the states", in[6], number, states.Dimensions...))
	case in[6].Rank() > 0:
		list = append(list, matches("the state", in[6], number, states.Dimensions...))
	}
	for _, err := range list {
		if err != nil {
			return nil, err
		}
	}
	return []shapes.Shape{v, states}, nil
}

// deltaGradientShapes checks the operands of deltaShapes, without slots, and the gradients of its results, where a
// scalar stands for a gradient of zeros of the states.
func deltaGradientShapes(in []shapes.Shape) ([]shapes.Shape, error) {
	if len(in) != 9 {
		return nil, fmt.Errorf("%d operands, want 9", len(in))
	}
	results, err := deltaShapes(in[:7])
	if err != nil {
		return nil, err
	}
	for i, x := range in[7:] {
		if zeros := i == 1 && x.Rank() == 0; !zeros && !x.Equal(results[i]) {
			return nil, fmt.Errorf("gradient %d is %s, want %s", i, x, results[i])
		}
	}
	v := results[0]
	keys := shapes.Make(v.DType, v.Dim(0), v.Dim(1), v.Dim(2), in[1].Dim(3))
	return []shapes.Shape{keys, keys, v, in[3], in[4], results[1]}, nil
}
