package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// valueAndGradient computes f of one row, and the gradient of Σ f(x)·target.
func valueAndGradient[T float32 | float64](
	t *testing.T, f func(*graph.Node) *graph.Node, x, target []float64,
) (y, grad []float64) {
	t.Helper()
	narrow := func(x []float64) *tensors.Tensor {
		row := make([]T, len(x))
		for i, v := range x {
			row[i] = T(v)
		}
		return graphtest.Tensor(row, 1, len(x))
	}
	out := graphtest.Run(t, graphtest.Device(t), func(in []*graph.Node) []*graph.Node {
		y := f(in[0])
		return []*graph.Node{y, graph.Gradient(graph.ReduceAllSum(graph.Mul(y, in[1])), in[0])[0]}
	}, narrow(x), narrow(target))
	for _, v := range graphtest.Values[T](t, out[0]) {
		y = append(y, float64(v))
	}
	for _, v := range graphtest.Values[T](t, out[1]) {
		grad = append(grad, float64(v))
	}
	return y, grad
}

func plainLogSoftmax(x []float64) []float64 {
	y, sum := make([]float64, len(x)), floats.LogSumExp(x)
	for i, v := range x {
		y[i] = v - sum
	}
	return y
}

func plainSoftmax(x []float64) []float64 {
	y := plainLogSoftmax(x)
	for i, v := range y {
		y[i] = math.Exp(v)
	}
	return y
}

// each is a function of each element.
func each(f func(x float64) float64) func(x []float64) []float64 {
	return func(x []float64) []float64 {
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = f(v)
		}
		return y
	}
}

func plainSilu(x float64) float64 { return x / (1 + math.Exp(-x)) }

func plainGelu(x float64) float64 {
	return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

// gatedBy is the function of an activation's gate alone.
func gatedBy(a activation) func(x *graph.Node) *graph.Node {
	return func(x *graph.Node) *graph.Node { return gated(a, x, graph.OnesLike(x)) }
}

// functions are those of activations.go and the same in plain Go. Where both operands of a gate depend on x, its
// gradient is the sum of theirs. Errors of tanh, of some last bits on XLA, are multiplied by x and more.
var functions = []struct {
	name   string
	graph  func(*graph.Node) *graph.Node
	plain  func([]float64) []float64
	errors float64 // times those of the others
}{
	{"softmax", softmax, plainSoftmax, 1}, {"logSoftmax", logSoftmax, plainLogSoftmax, 1},
	{"silu", gatedBy(silu), each(plainSilu), 1}, {"geluTanh", gatedBy(geluTanh), each(plainGelu), 8},
	{"silu tanh", func(x *graph.Node) *graph.Node { return gated(silu, x, graph.Tanh(x)) },
		each(func(x float64) float64 { return plainSilu(x) * math.Tanh(x) }), 8},
	{"geluTanh tanh", func(x *graph.Node) *graph.Node { return gated(geluTanh, x, graph.Tanh(x)) },
		each(func(x float64) float64 { return plainGelu(x) * math.Tanh(x) }), 8},
}

// TestSoftmax_Masked: what is masked has no weight at all.
func TestSoftmax_Masked(t *testing.T) {
	y, _ := valueAndGradient[float32](t, softmax, []float64{3, masked, 1}, []float64{1, 1, 1})
	require.Zero(t, y[1])
	require.InDelta(t, 1, y[0]+y[2], 1e-6)
}

// TestActivations_MatchPlainGo compares values with float64, in both types of numbers.
func TestActivations_MatchPlainGo(t *testing.T) {
	src := rand.New(rand.NewPCG(seed, 20))
	for _, a := range functions {
		for _, scale := range []float64{1e-3, 1, 30} {
			x := make([]float64, 300)
			for i := range x {
				x[i] = float64(float32(src.NormFloat64() * scale))
			}
			want := a.plain(x)
			single, _ := valueAndGradient[float32](t, a.graph, x, x)
			double, _ := valueAndGradient[float64](t, a.graph, x, x)
			for i := range want {
				// Each step rounds to 2^-24 of its result, the largest of which is the one returned or a sum of 1 or more.
				most := 5 * a.errors * 0x1p-24 * max(1, math.Abs(want[i]))
				require.InDelta(t, want[i], single[i], most, "%s(%v), scale %v, seed %d", a.name, x[i], scale, seed)
				require.InDelta(t, want[i], double[i], 1e-14*max(1, math.Abs(want[i])), "%s(%v)", a.name, x[i])
			}
		}
	}
}

// TestActivations_GradientMatchesFiniteDifferences differentiates the plain functions.
func TestActivations_GradientMatchesFiniteDifferences(t *testing.T) {
	src := rand.New(rand.NewPCG(seed, 21))
	for _, a := range functions {
		x, target := make([]float64, 40), make([]float64, 40)
		for i := range x {
			x[i], target[i] = float64(float32(3*src.NormFloat64())), float64(float32(src.NormFloat64()))
		}
		x[3], x[5], x[8], x[9] = 0, 12, -14, 1e-3
		plain := func(x []float64) float64 { return floats.Dot(a.plain(x), target) }
		want := fd.Gradient(nil, plain, x, &fd.Settings{Formula: fd.Central, Step: 1e-5})
		_, double := valueAndGradient[float64](t, a.graph, x, target)
		require.InDeltaSlice(t, want, double, 1e-8, "%s, seed %d", a.name, seed)
		_, single := valueAndGradient[float32](t, a.graph, x, target)
		require.InDeltaSlice(t, want, single, 2e-6*a.errors, "%s, seed %d", a.name, seed)
	}
}

// TestSoftmax_Extremes: masked entries have no weight and no gradient, and nothing is NaN.
func TestSoftmax_Extremes(t *testing.T) {
	for _, c := range []struct{ x, want []float64 }{
		{[]float64{0, masked, 0, masked}, []float64{0.5, 0, 0.5, 0}},
		{[]float64{masked, -3, masked, masked}, []float64{0, 1, 0, 0}},
		{[]float64{masked, masked}, []float64{0.5, 0.5}},
		{[]float64{1e30, 0, -1e30}, []float64{1, 0, 0}},
		{[]float64{3e38, 3e38, -3e38}, []float64{0.5, 0.5, 0}},
		{[]float64{200, 0}, []float64{1, 0}},
		{[]float64{0}, []float64{1}},
	} {
		target := []float64{0.3, -2, 5, 0.7}[:len(c.x)]
		y, grad := valueAndGradient[float32](t, softmax, c.x, target)
		require.Equal(t, c.want, y, "%v", c.x)
		mean := floats.Dot(c.want, target)
		for i, p := range c.want {
			require.InDelta(t, p*(target[i]-mean), grad[i], 1e-6, "%v", c.x)
			if p == 0 {
				require.Zero(t, grad[i], "%v", c.x)
			}
		}
	}
}

// TestLogSoftmax_Extremes: far below the maximum the result is the difference itself, and nothing is NaN.
func TestLogSoftmax_Extremes(t *testing.T) {
	y, grad := valueAndGradient[float32](t, logSoftmax, []float64{masked, 5, -100, 5 - 50}, []float64{1, 0, 2, 0})
	require.Equal(t, []float64{float64(float32(masked)), 0, -105, -50}, y)
	require.InDeltaSlice(t, []float64{1, -3, 2, 0}, grad, 1e-20)
	y, _ = valueAndGradient[float32](t, logSoftmax, []float64{1e30, 1e30}, []float64{1, 1})
	require.InDeltaSlice(t, []float64{-math.Ln2, -math.Ln2}, y, 1e-7)
}

func TestSilu_Extremes(t *testing.T) {
	x := []float64{0, 1e30, 3e38, -1e30, -3e38, 88.8, -88.8, -104, 20, -1e-30, 1e-30}
	ones := make([]float64, len(x))
	for i := range ones {
		ones[i] = 1
	}
	y, grad := valueAndGradient[float32](t, gatedBy(silu), x, ones)
	want := []float64{0, 1e30, 3e38, 0, 0, 88.8, 0, 0, 20, -0.5e-30, 0.5e-30}
	slope := []float64{0.5, 1, 1, 0, 0, 1, 0, 0, 1, 0.5, 0.5}
	for i := range x {
		require.InDelta(t, want[i], y[i], 1e-6*math.Abs(want[i])+1e-36, "silu(%v)", x[i])
		require.InDelta(t, slope[i], grad[i], 1e-6, "silu'(%v)", x[i])
	}
}

// TestWithGradient: the value is that of the function, and the gradient is the one given, of whatever shape the value
// is. With GoMLX's fusion switched off the gradient is that of the function.
func TestWithGradient(t *testing.T) {
	for fusion, want := range map[string][]float32{"1": {5, 5}, "0": {6, 8}} {
		t.Setenv(graph.FusionEnv, fusion)
		out := graphtest.Run(t, graphtest.Device(t), func(in []*graph.Node) []*graph.Node {
			y := withGradient(in[0], func(x *graph.Node) *graph.Node { return graph.ReduceAllSum(graph.Mul(x, x)) },
				func(v *graph.Node) *graph.Node { return graph.BroadcastToDims(graph.MulScalar(v, 5), 2) })
			return []*graph.Node{y, graph.Gradient(y, in[0])[0]}
		}, graphtest.Tensor([]float32{3, 4}, 2))
		require.Equal(t, []float32{25}, graphtest.Values[float32](t, out[0]))
		require.Equal(t, want, graphtest.Values[float32](t, out[1]), "fusion %s", fusion)
	}
}
