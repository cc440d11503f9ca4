package cpu

import (
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// TestSwap_Transposed: a matmul that is only read transposed, as an output, is computed so, unless its right operand
// may be packed.
func TestSwap_Transposed(t *testing.T) {
	rng := seeded(t)
	const m, k, n = 5, 7, 40
	for _, c := range []struct {
		name                  string
		made, plain, reshaped bool // the right operand is computed; the matmul is an output, too; the output has another axis
		steps                 int
	}{
		{"an output", true, false, false, 2},
		{"with another axis", true, false, true, 2},
		{"an output both ways", true, true, false, 3},
		{"of an input that may be packed", false, false, false, 2},
	} {
		left, right := shapes.Make(dtypes.Float32, m, k), shapes.Make(dtypes.Float32, k, n)
		d := newDevice(t, 2)
		e := compileGraph(t, d, []shapes.Shape{left, right}, func(f compute.Function, x []compute.Value) []compute.Value {
			y := x[1]
			if c.made {
				y = must(f.Neg(y))(t)
			}
			matmul := must(f.DotGeneral(x[0], []int{1}, nil, y, []int{0}, nil, compute.DotGeneralConfig{}))(t)
			out := must(f.Transpose(matmul, 1, 0))(t)
			if c.reshaped {
				out = must(f.Reshape(out, n, 1, m))(t)
			}
			if c.plain {
				return []compute.Value{out, matmul}
			}
			return []compute.Value{out}
		})
		a, b := make([]float32, m*k), make([]float32, k*n)
		for _, list := range [][]float32{a, b} {
			for i := range list {
				list[i] = float32(rng.IntN(100)) // sums are exact
			}
		}
		in := []compute.Buffer{must(d.BufferFromFlatData(0, a, left))(t), must(d.BufferFromFlatData(0, b, right))(t)}
		want := make([]float32, n*m)
		for i := range n * m {
			for l := range k {
				want[i] += a[i%m*k+l] * b[l*n+i/m]
			}
			if c.made {
				want[i] = -want[i]
			}
		}
		out := must(e.Execute(in, nil, 0))(t)
		if got := floatsOf(t, out[0]); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.name, got, want)
		}
		if steps := len(e.(*executable).plan.Steps); steps != c.steps {
			t.Errorf("%s: %d steps, want %d", c.name, steps, c.steps)
		}
	}
}
