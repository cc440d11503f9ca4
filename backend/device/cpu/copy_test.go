package cpu

import (
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// TestCopy_Large: transposes, slices and reversals of a tensor that is large enough for several workers.
func TestCopy_Large(t *testing.T) {
	d := newDevice(t, 3)
	shape := shapes.Make(dtypes.Float32, 30, 41, 67)
	data := make([]float32, shape.Size())
	for i := range data {
		data[i] = float32(i)
	}
	in := must(d.BufferFromFlatData(0, data, shape))(t)
	for _, axes := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for _, reversed := range []bool{false, true} {
			e := compileGraph(t, d, []shapes.Shape{shape}, func(f compute.Function, x []compute.Value) []compute.Value {
				y := must(f.Transpose(x[0], axes...))(t)
				if reversed {
					y = must(f.Reverse(y, 1))(t)
				}
				return []compute.Value{y}
			})
			want := ir.Whole(nil, shape.Dimensions).Transpose(axes)
			if reversed {
				want = want.Reverse([]int{1})
			}
			got := floatsOf(t, must(e.Execute([]compute.Buffer{in}, nil, 0))(t)[0])
			if !slices.EqualFunc(got, want.Offsets(), func(x float32, off int) bool { return x == float32(off) }) {
				t.Errorf("axes %v, reversed %v: elements are at wrong places", axes, reversed)
			}
		}
	}
}
