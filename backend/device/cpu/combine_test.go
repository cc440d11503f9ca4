package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// sequence is a graph of the steps of a kernel, on rows of numbers.
type sequence struct {
	kernel        vec.Fused
	rows, columns int
	each          bool // scalars are one number for each row
	swap          bool // operands change places where that may be
	exchanged     int  // a difference or quotient whose operands change places, which is another sequence; -1 for none
	also          int  // a step whose result is returned too; -1 for none
}

// build returns the outputs of the graph: what the kernel stores, and the sum.
func (s sequence) build(t *testing.T, f compute.Function) []compute.Value {
	t.Helper()
	must := func(v compute.Value, err error) compute.Value {
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	all := shapes.Make(dtypes.Float32, s.rows, s.columns)
	var values []compute.Value
	for i := range s.kernel.Streams {
		values = append(values, must(f.Parameter(fmt.Sprint("x", i), all, nil)))
	}
	for i := range s.kernel.Scalars {
		if s.each {
			x := must(f.Parameter(fmt.Sprint("s", i), all, nil))
			values = append(values, must(f.BroadcastInDim(must(f.ReduceMax(x, 1)), all, []int{0})))
			continue
		}
		x := must(f.Parameter(fmt.Sprint("s", i), shapes.Make(dtypes.Float32), nil))
		values = append(values, must(f.BroadcastInDim(x, all, nil)))
	}
	for i, step := range s.kernel.Steps {
		if step.B < 0 {
			values = append(values, must(unaryOf(f, step.Unary)(values[step.A])))
			continue
		}
		a, b := values[step.A], values[step.B]
		if s.swap && commutes(step) || i == s.exchanged {
			a, b = b, a
		}
		values = append(values, must(binaryOf(f, step.Binary)(a, b)))
	}
	var out []compute.Value
	for _, v := range s.kernel.Out {
		out = append(out, values[v])
	}
	if s.kernel.Sum >= 0 {
		out = append(out, must(f.ReduceSum(values[s.kernel.Sum], 1)))
	}
	if s.also >= 0 {
		out = append(out, values[s.kernel.Streams+s.kernel.Scalars+s.also])
	}
	return out
}

// commutes reports whether the operands of a step may change places.
func commutes(step vec.FusedStep) bool {
	return step.B >= 0 && (step.Binary == vec.OpAdd || step.Binary == vec.OpMul)
}

func unaryOf(f compute.Function, op vec.UnaryOp) func(x compute.Value) (compute.Value, error) {
	return map[vec.UnaryOp]func(x compute.Value) (compute.Value, error){
		vec.OpAbs: f.Abs, vec.OpSqrt: f.Sqrt, vec.OpExp: f.Exp, vec.OpSigmoid: f.Logistic,
	}[op]
}

func binaryOf(f compute.Function, op vec.BinaryOp) func(a, b compute.Value) (compute.Value, error) {
	return map[vec.BinaryOp]func(a, b compute.Value) (compute.Value, error){
		vec.OpAdd: f.Add, vec.OpSub: f.Sub, vec.OpMul: f.Mul, vec.OpDiv: f.Div,
	}[op]
}

// run computes the graph on random numbers, some of them special, and returns the outputs and how many kernels of the
// sequence it has.
func (s sequence) run(t *testing.T, d *Device, seed uint64) (out [][]float32, kernels int) {
	t.Helper()
	b := newBuilder(d, "sequence")
	if err := b.Main().Return(s.build(t, b.Main()), nil); err != nil {
		t.Fatal(err)
	}
	compiled, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	e := compiled.(*executable)
	rng := rand.New(rand.NewPCG(seed, 2))
	var inputs []compute.Buffer
	for _, input := range e.plan.Inputs {
		x := make([]float32, input.Shape.Size())
		for i := range x {
			x[i] = float32(rng.NormFloat64())
			if rng.IntN(50) == 0 {
				x[i] = []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.NaN()), 1e-40,
					-3e38}[rng.IntN(6)]
			}
		}
		buffer, err := d.BufferFromFlatData(0, x, input.Shape)
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, buffer)
	}
	results, err := e.Execute(inputs, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		x := make([]float32, e.plan.Outputs[i].Shape.Size())
		if err := r.ToFlatData(x); err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
	return out, combined(e.plan)[s.kernel.Name]
}

// TestCombine_SameBits: each kernel for several operations is found, gives what they give one after another, and is not
// used where something else needs a result that it does not store.
func TestCombine_SameBits(t *testing.T) {
	rng := seeded(t)
	plain, fused := newDevice(t, 1), newDevice(t, 2)
	plain.unfused = true
	for _, k := range vec.FusedKernels() {
		for also := -1; also < len(k.Steps); also++ {
			for range repeats(20) + 2 {
				s := sequence{kernel: k, rows: 1 + rng.IntN(6), columns: 2 + rng.IntN(300), each: rng.IntN(2) == 0,
					swap: rng.IntN(2) == 0, exchanged: -1, also: also}
				stored := also < 0 || slices.Contains(k.Out, k.Streams+k.Scalars+also)
				s.check(t, plain, fused, rng.Uint64(), map[bool]int{true: 1}[stored])
			}
		}
	}
}

// TestCombine_Order: a kernel is not used where the operands of a difference or a quotient are in another order.
func TestCombine_Order(t *testing.T) {
	rng := seeded(t)
	plain, fused := newDevice(t, 1), newDevice(t, 2)
	plain.unfused = true
	for _, k := range vec.FusedKernels() {
		for i, step := range k.Steps {
			if step.B < 0 || commutes(step) {
				continue
			}
			for _, each := range []bool{false, true} {
				s := sequence{kernel: k, rows: 3, columns: 40, each: each, exchanged: i, also: -1}
				s.check(t, plain, fused, rng.Uint64(), 0)
			}
		}
	}
}

// check compares the outputs of two devices, and the number of kernels that the second one has found.
func (s sequence) check(t *testing.T, plain, fused *Device, seed uint64, kernels int) {
	t.Helper()
	want, _ := s.run(t, plain, seed)
	got, n := s.run(t, fused, seed)
	if n != kernels {
		t.Errorf("%s %+v: %d kernels, want %d", s.kernel.Name, s, n, kernels)
	}
	for o := range want {
		for i, x := range want[o] {
			if math.Float32bits(x) != math.Float32bits(got[o][i]) && x == x {
				t.Fatalf("%s %+v: output %d, element %d is %v, want %v", s.kernel.Name, s, o, i, got[o][i], x)
			}
		}
	}
}
