package cpu

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// TestSignature: what is asked for twice is computed once, and what differs in an attribute, a type, a shape or the
// bits of a constant is not the same.
func TestSignature(t *testing.T) {
	f := newBuilder(newDevice(t, 1), "common").main
	must := valueOf(t)
	x := must(f.Parameter("x", shapes.Make(dtypes.Float32, 3, 4), nil))
	y := must(f.Parameter("x", shapes.Make(dtypes.Float32, 3, 4), nil))
	number := func(v float32) compute.Value { return must(f.Constant([]float32{v})) }
	all := map[string]func() compute.Value{
		"x x":            func() compute.Value { return must(f.Mul(x, x)) },
		"x y":            func() compute.Value { return must(f.Mul(x, y)) },
		"y x":            func() compute.Value { return must(f.Mul(y, x)) },
		"x + y":          func() compute.Value { return must(f.Add(x, y)) },
		"sum 0":          func() compute.Value { return must(f.ReduceSum(x, 0)) },
		"sum 1":          func() compute.Value { return must(f.ReduceSum(x, 1)) },
		"largest 1":      func() compute.Value { return must(f.ReduceMax(x, 1)) },
		"transposed":     func() compute.Value { return must(f.Transpose(x, 1, 0)) },
		"reshaped":       func() compute.Value { return must(f.Reshape(x, 4, 3)) },
		"to bfloat16":    func() compute.Value { return must(f.ConvertDType(x, dtypes.BFloat16)) },
		"to float64":     func() compute.Value { return must(f.ConvertDType(x, dtypes.Float64)) },
		"counted rows":   func() compute.Value { return must(f.Iota(shapes.Make(dtypes.Int32, 3, 4), 0)) },
		"counted":        func() compute.Value { return must(f.Iota(shapes.Make(dtypes.Int32, 3, 4), 1)) },
		"zero":           func() compute.Value { return number(0) },
		"negative zero":  func() compute.Value { return number(float32(math.Copysign(0, -1))) },
		"one":            func() compute.Value { return number(1) },
		"one in integer": func() compute.Value { return must(f.Constant([]int32{0x3f800000})) },
		"matmul": func() compute.Value {
			return must(f.DotGeneral(x, []int{1}, nil, y, []int{1}, nil, compute.DotGeneralConfig{}))
		},
		"matmul of columns": func() compute.Value {
			return must(f.DotGeneral(x, []int{0}, nil, y, []int{0}, nil, compute.DotGeneralConfig{}))
		},
	}
	first := map[string]compute.Value{}
	for name, build := range all {
		first[name] = build()
	}
	for name, build := range all {
		for other, v := range first {
			if got := build() == v; got != (name == other) {
				t.Errorf("%s and %s are one: %v", name, other, got)
			}
		}
	}
	if x == y {
		t.Error("two parameters are one")
	}
}
