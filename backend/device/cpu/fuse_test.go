package cpu

import (
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// TestFuse_Cycle: c - b is not computed in the loop of c. That of a and late comes after it, and before the product that b is made of.
func TestFuse_Cycle(t *testing.T) {
	fused, plain := newDevice(t, 1), newDevice(t, 1)
	plain.unfused = true
	matrix := shapes.Make(dtypes.Float32, 3, 3)
	results := func(d *Device) []float32 {
		e := program(t, d, []shapes.Shape{row(3), matrix}, func(f compute.Function, x []compute.Value) []compute.Value {
			product := func(m compute.Value) compute.Value {
				return must(f.DotGeneral(x[0], []int{0}, nil, m, []int{0}, nil, compute.DotGeneralConfig{}))(t)
			}
			a := must(f.Neg(x[1]))(t)
			b := must(f.Tanh(product(a)))(t)
			c := must(f.Tanh(product(x[1])))(t)
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
		c, b := newCompiler(d), g.b.(*builder)
		must(c.compile(b.main.parameters, b.main.outputs, nil))(t)
		for _, u := range c.units {
			for _, w := range u.deps {
				if u.into == nil && w.root() != u && w.root().position >= u.position {
					t.Fatalf("step %d waits for step %d\n%v", u.position, w.root().position, g.log)
				}
			}
		}
	}
}
