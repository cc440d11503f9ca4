package cpu

import (
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/compile"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// TestFuse_Cycle: c - b is not computed in the loop of c. That of a and late comes after it, and before the matmul
// that b is made of.
func TestFuse_Cycle(t *testing.T) {
	fused, plain := newDevice(t, 1), newDevice(t, 1)
	plain.unfused = true
	matrix := shapes.Make(dtypes.Float32, 3, 3)
	results := func(d *Device) []float32 {
		e := compileGraph(t, d, []shapes.Shape{row(3), matrix}, func(f compute.Function, x []compute.Value) []compute.Value {
			matmul := func(m compute.Value) compute.Value {
				return must(f.DotGeneral(x[0], []int{0}, nil, m, []int{0}, nil, compute.DotGeneralConfig{}))(t)
			}
			a := must(f.Neg(x[1]))(t)
			b := must(f.Tanh(matmul(a)))(t)
			c := must(f.Tanh(matmul(x[1])))(t)
			late := must(f.Mul(a, must(f.BroadcastInDim(c, matrix, []int{0}))(t)))(t)
			return []compute.Value{must(f.Sub(c, b))(t), late}
		})
		m := must(d.BufferFromFlatData(0, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}, matrix))(t)
		out := must(e.Execute([]compute.Buffer{vector(t, d, 0.1, 0.2, 0.3), m}, nil, 0))(t)
		return slices.Concat(floatsOf(t, out[0]), floatsOf(t, out[1]))
	}
	if got, want := results(fused), results(plain); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestFuse_Order: each step of a random graph comes after all that it waits for.
func TestFuse_Order(t *testing.T) {
	rng := seeded(t)
	d := newDevice(t, 1)
	for range repeats(2000) {
		g := newRecipe(rng, dtypes.Float32).build(t, d, 1+rng.IntN(100))
		must(0, g.f.Return(g.values[len(g.values)-1-rng.IntN(2):], nil))(t)
		p := must(g.b.Compile())(t).(*executable).plan
		ready := map[*ir.Tensor]bool{}
		for _, x := range p.Tensors {
			ready[x] = x.Memory == ir.InInput || x.Memory == ir.InConstant
		}
		for i, s := range p.Steps {
			for _, v := range s.Reads() {
				if !ready[v.Of] {
					t.Fatalf("step %d reads tensor %d before it is written\n%v", i, v.Of.ID, g.log)
				}
			}
			for _, x := range s.Writes() {
				ready[x] = true
			}
		}
		for i, o := range p.Outputs {
			if !ready[o.Of] {
				t.Fatalf("output %d is not written\n%v", i, g.log)
			}
		}
	}
}

// TestFuse_SwappedHalves: rows that are read with their parts swapped, as RoPE does, are swapped within the loop
// that makes them, if they fit into its rows.
func TestFuse_SwappedHalves(t *testing.T) {
	rng := seeded(t)
	for _, c := range []struct {
		rows, parts, each, inner int // a sum takes inner elements; 0: there is none
		steps                    int
		pairs                    bool // pairs of rows are swapped too
	}{
		{6, 2, 4, 0, 1, false}, {6, 2, 4, 8, 1, false}, {6, 2, 4, 24, 1, false}, {1, 2, 64, 0, 1, false}, {300, 2, 64, 128, 1, false}, {7, 3, 5, 0, 1, false}, {1, 3, 5, 15, 1, false},
		{6, 2, 4, 12, 2, false},                                // a row of the sum ends within one that is swapped
		{6, 2, 4, 4, 2, false},                                 // likewise
		{2, 2, compile.LongRow, 0, 2, false},                   // longer than what is computed at once
		{2, 2, compile.LongRow, 2 * compile.LongRow, 2, false}, // likewise
		{6, 2, 4, 0, 2, true}, {6, 2, 4, 16, 1, true},
	} {
		shape := shapes.Make(dtypes.Float32, c.rows, c.parts, c.each)
		var numbers [2][]float32
		for i := range numbers {
			for range shape.Size() {
				numbers[i] = append(numbers[i], float32(rng.NormFloat64()))
			}
		}
		results := func(d *Device) ([]float32, int) {
			e := compileGraph(t, d, []shapes.Shape{shape, shape}, func(f compute.Function, x []compute.Value) []compute.Value {
				y := must(f.Tanh(x[0]))(t)
				if c.inner > 0 {
					flat := must(f.Reshape(y, shape.Size()/c.inner, c.inner))(t)
					sum := must(f.ReduceSum(flat, 1))(t)
					spread := must(f.BroadcastInDim(sum, shapes.Make(dtypes.Float32, shape.Size()/c.inner, c.inner), []int{0}))(t)
					y = must(f.Reshape(must(f.Mul(flat, spread))(t), shape.Dimensions...))(t)
				}
				sum := must(f.Add(y, must(f.Mul(must(f.Reverse(y, 1))(t), x[1]))(t)))(t)
				if c.pairs {
					swapped := must(f.Reverse(must(f.Reshape(y, c.rows/2, 2, c.parts*c.each))(t), 1))(t)
					sum = must(f.Mul(sum, must(f.Reshape(must(f.Neg(swapped))(t), shape.Dimensions...))(t)))(t)
				}
				return []compute.Value{sum}
			})
			in := []compute.Buffer{must(d.BufferFromFlatData(0, numbers[0], shape))(t),
				must(d.BufferFromFlatData(0, numbers[1], shape))(t)}
			return floatsOf(t, must(e.Execute(in, nil, 0))(t)[0]), len(e.(*executable).plan.Steps)
		}
		fused, plain := newDevice(t, 2), newDevice(t, 1)
		plain.unfused = true
		got, steps := results(fused)
		want, _ := results(plain)
		if !slices.Equal(got, want) {
			t.Errorf("%+v: not the same numbers", c)
		}
		if steps != c.steps {
			t.Errorf("%+v: %d steps", c, steps)
		}
	}
}
