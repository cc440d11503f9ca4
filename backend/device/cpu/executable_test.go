package cpu

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// compileGraph compiles a function of float32 parameters.
func compileGraph(t testing.TB, d *Device, in []shapes.Shape, build func(f compute.Function,
	x []compute.Value) []compute.Value) compute.Executable {
	t.Helper()
	b := d.Builder(t.Name())
	var x []compute.Value
	for _, s := range in {
		x = append(x, must(b.Main().Parameter("x", s, nil))(t))
	}
	if err := b.Main().Return(build(b.Main(), x), nil); err != nil {
		t.Fatal(err)
	}
	e, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func must[T any](x T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

func floatsOf(t testing.TB, b compute.Buffer) []float32 {
	t.Helper()
	s, _ := b.Shape()
	out := make([]float32, s.Size())
	if err := b.ToFlatData(out); err != nil {
		t.Fatal(err)
	}
	return out
}

func vector(t testing.TB, d *Device, x ...float32) compute.Buffer {
	t.Helper()
	return must(d.BufferFromFlatData(0, x, shapes.Make(dtypes.Float32, len(x))))(t)
}

func row(n int) shapes.Shape { return shapes.Make(dtypes.Float32, n) }

// TestExecute_Donated: a donated input is empty afterwards, its memory holds the output, and one that is not donated
// keeps its values.
func TestExecute_Donated(t *testing.T) {
	d := newDevice(t, 2)
	e := compileGraph(t, d, []shapes.Shape{row(3), row(3)}, func(f compute.Function, x []compute.Value) []compute.Value {
		return []compute.Value{must(f.Add(x[0], must(f.Mul(x[0], x[1]))(t)))(t)}
	})
	for _, donated := range []bool{false, true} {
		a, b := vector(t, d, 1, 2, 3), vector(t, d, 4, 5, 6)
		memory := must(a.Data())(t).([]float32)
		out := must(e.Execute([]compute.Buffer{a, b}, []bool{donated, false}, 0))(t)
		if got := floatsOf(t, out[0]); !slices.Equal(got, []float32{5, 12, 21}) {
			t.Fatalf("donated %v: %v", donated, got)
		}
		if got := &must(out[0].Data())(t).([]float32)[0] == &memory[0]; got != donated {
			t.Errorf("donated %v: the output lies in the memory of the input: %v", donated, got)
		}
		if _, err := a.Data(); (err != nil) != donated {
			t.Errorf("donated %v: the input afterwards: %v", donated, err)
		}
		if got := floatsOf(t, b); !slices.Equal(got, []float32{4, 5, 6}) {
			t.Errorf("donated %v: the other input is now %v", donated, got)
		}
	}
}

// TestExecute_DonatedButNeeded: an output does not take over the memory of an input that is read after it was written,
// or at other places.
func TestExecute_DonatedButNeeded(t *testing.T) {
	d := newDevice(t, 1)
	for name, build := range map[string]func(f compute.Function, x compute.Value) []compute.Value{
		"reversed": func(f compute.Function, x compute.Value) []compute.Value {
			return []compute.Value{must(f.Add(x, must(f.Reverse(x, 0))(t)))(t)}
		},
		"read later": func(f compute.Function, x compute.Value) []compute.Value {
			y := must(f.Neg(x))(t)
			return []compute.Value{y, must(f.Concatenate(0, must(f.Exp(must(f.Mul(y, must(f.ReduceSum(x))(t)))(t)))(t), x))(t)}
		},
		"read by the same loop after that": func(f compute.Function, x compute.Value) []compute.Value {
			y := must(f.Neg(x))(t)
			return []compute.Value{y, must(f.Add(must(f.Exp(x))(t), y))(t)}
		},
		"read by a later step": func(f compute.Function, x compute.Value) []compute.Value {
			y := must(f.Neg(x))(t)
			return []compute.Value{y, must(f.Concatenate(0, y, x))(t)}
		},
		"returned as well": func(f compute.Function, x compute.Value) []compute.Value {
			return []compute.Value{must(f.Neg(x))(t), x}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := compileGraph(t, d, []shapes.Shape{row(4)},
				func(f compute.Function, x []compute.Value) []compute.Value { return build(f, x[0]) })
			want := must(e.Execute([]compute.Buffer{vector(t, d, 1, -2, 3, 0.5)}, nil, 0))(t)
			got := must(e.Execute([]compute.Buffer{vector(t, d, 1, -2, 3, 0.5)}, []bool{true}, 0))(t)
			for i := range want {
				if a, b := floatsOf(t, want[i]), floatsOf(t, got[i]); !slices.Equal(a, b) {
					t.Errorf("output %d is %v when the input is donated, else %v", i, b, a)
				}
			}
		})
	}
}

// TestExecute_Refuses: what does not fit is an error, and the inputs stay as they are.
func TestExecute_Refuses(t *testing.T) {
	d, other := newDevice(t, 1), newDevice(t, 1)
	e := compileGraph(t, d, []shapes.Shape{row(2), row(2)}, func(f compute.Function, x []compute.Value) []compute.Value {
		return []compute.Value{must(f.Add(x[0], x[1]))(t)}
	})
	good, gone := vector(t, d, 1, 2), vector(t, d, 1, 2)
	if err := gone.Finalize(); err != nil {
		t.Fatal(err)
	}
	for want, in := range map[string][]compute.Buffer{
		"1 inputs":               {good},
		"want (Float32)[2]":      {good, vector(t, d, 1, 2, 3)},
		"not a buffer of this":   {good, vector(t, other, 1, 2)},
		"finalized":              {good, gone},
		"inputs 0 and 1 are one": {good, good},
	} {
		_, err := e.Execute(in, []bool{true, false}[:len(in)], 0)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
		if got := floatsOf(t, good); !slices.Equal(got, []float32{1, 2}) {
			t.Fatalf("%q: an input is now %v", want, got)
		}
	}
}

// TestBuild_Refuses names what is missing.
func TestBuild_Refuses(t *testing.T) {
	d := newDevice(t, 1)
	b := d.Builder("x")
	x := must(b.Main().Parameter("x", shapes.Make(dtypes.Int32, 2), nil))(t)
	if _, err := b.Main().Erf(x); err == nil {
		t.Error("erf of integers")
	}
	if _, err := b.Main().FFT(x, 0, nil); err == nil || !compute.IsNotImplemented(err) || !strings.Contains(err.Error(),
		"FFT") {
		t.Errorf("a missing operation: %v", err)
	}
	if _, err := b.Main().Parameter("c", shapes.Make(dtypes.Complex64, 2), nil); err == nil ||
		!strings.Contains(err.Error(), "Complex64") {
		t.Errorf("a missing type: %v", err)
	}
	if _, err := d.Builder("y").Main().Neg(x); err == nil {
		t.Error("a value of another function")
	}
}

// TestExecute_Concurrent runs one executable from several goroutines.
func TestExecute_Concurrent(t *testing.T) {
	d := newDevice(t, 3)
	const n = 300
	shape := shapes.Make(dtypes.Float32, n, n)
	e := compileGraph(t, d, []shapes.Shape{shape}, func(f compute.Function, x []compute.Value) []compute.Value {
		y := must(f.DotGeneral(x[0], []int{1}, nil, x[0], []int{0}, nil, compute.DotGeneralConfig{}))(t)
		return []compute.Value{must(f.Tanh(must(f.Add(y, x[0]))(t)))(t)}
	})
	var wg sync.WaitGroup
	for seed := range uint64(8) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			data := make([]float32, n*n)
			for i := range data {
				data[i] = rng.Float32() - 0.5
			}
			var first []float32
			for range 5 {
				in := must(d.BufferFromFlatData(0, data, shape))(t)
				out := must(e.Execute([]compute.Buffer{in}, []bool{true}, 0))(t)
				got := floatsOf(t, out[0])
				if first == nil {
					first = got
				}
				if !slices.Equal(first, got) {
					t.Error("the same input gives another output")
				}
			}
		})
	}
	wg.Wait()
}

// TestExecute_NoTensorsAllocated: in a steady state a run takes its memory from what the runs before gave back.
func TestExecute_NoTensorsAllocated(t *testing.T) {
	if testing.Short() {
		t.Skip("measures; the race detector, which runs the short tests, makes pools forget")
	}
	d := newDevice(t, 2)
	shape := shapes.Make(dtypes.Float32, 256, 512)
	e := compileGraph(t, d, []shapes.Shape{shape}, func(f compute.Function, x []compute.Value) []compute.Value {
		y := must(f.DotGeneral(x[0], []int{1}, nil, x[0], []int{1}, nil, compute.DotGeneralConfig{}))(t)
		y = must(f.Exp(must(f.Sub(y, must(f.BroadcastInDim(must(f.ReduceMax(y, 1))(t), shapes.Make(dtypes.Float32, 256, 256),
			[]int{0}))(t)))(t)))(t)
		return []compute.Value{must(f.DotGeneral(y, []int{1}, nil, x[0], []int{0}, nil, compute.DotGeneralConfig{}))(t)}
	})
	in := must(d.BufferFromFlatData(0, make([]float32, 256*512), shape))(t)
	once := func() {
		out := must(e.Execute([]compute.Buffer{in}, nil, 0))(t)
		if err := out[0].Finalize(); err != nil {
			t.Fatal(err)
		}
	}
	once()
	const runs = 500
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		once()
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / runs; each > 16<<10 {
		t.Errorf("a run allocates %d bytes, the tensors have %d", each, bytesOf(shape))
	}
}
