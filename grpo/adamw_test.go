package grpo

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// optimizer runs AdamW on a device, its state in plain slices: parameters, first moments, second moments.
type optimizer[T float32 | float64] struct {
	cfg    AdamW
	exec   *graph.Exec
	shapes [][]int
	state  [][]T
	step   int
}

func newOptimizer[T float32 | float64](
	t *testing.T, device compute.Backend, cfg AdamW, shapes [][]int, start [][]T,
) *optimizer[T] {
	t.Helper()
	exec := compiled(t, device, cfg, func(in []*graph.Node) []*graph.Node {
		n := len(in) / 4
		state := AdamWState{Params: in[:n], M: in[n : 2*n], V: in[2*n : 3*n]}
		next, norm := cfg.Step(state, in[3*n:4*n], in[4*n])
		return append(next.Nodes(), norm)
	})
	o := &optimizer[T]{cfg: cfg, exec: exec, shapes: shapes}
	n := len(shapes)
	for i := range 3 * n {
		data := make([]T, len(start[i%n]))
		if i < n {
			copy(data, start[i])
		}
		o.state = append(o.state, data)
	}
	return o
}

// update makes one step and returns the norm. A step whose norm is not finite is not counted.
func (o *optimizer[T]) update(t *testing.T, grads [][]T, lr float64) float64 {
	t.Helper()
	var args []any
	for i, data := range append(o.state[:len(o.state):len(o.state)], grads...) {
		args = append(args, tensors.FromFlatDataAndDimensions(append([]T{}, data...), o.shapes[i%len(o.shapes)]...))
	}
	scalars := make([]T, NumScalars)
	for i, v := range o.cfg.Scalars(o.step+1, lr) {
		scalars[i] = T(v)
	}
	out, err := o.exec.Call(append(args, tensors.FromFlatDataAndDimensions(scalars, NumScalars))...)
	require.NoError(t, err)
	for i := range o.state {
		o.state[i] = graphtest.Values[T](t, out[i])
	}
	norm := float64(graphtest.Values[T](t, out[len(o.state)])[0])
	if finite(norm) {
		o.step++
	}
	return norm
}

// cast converts a list of slices.
func cast[T float32 | float64](x [][]float64) [][]T {
	out := make([][]T, len(x))
	for i, row := range x {
		for _, v := range row {
			out[i] = append(out[i], T(v))
		}
	}
	return out
}

// TestAdamW_MatchesTorch compares 12 steps, gradients from 0.01 to 10, clipped and not, with torch.optim.AdamW.
func TestAdamW_MatchesTorch(t *testing.T) {
	device := graphtest.Device(t)
	for i, c := range readTorchGolden(t).AdamW {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			cfg := AdamW{Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps, WeightDecay: c.WeightDecay, MaxGradNorm: c.MaxNorm}
			shapes := [][]int{{3, 4}, {5}}
			single := newOptimizer(t, device, cfg, shapes, cast[float32](c.Start))
			double := newOptimizer(t, device, cfg, shapes, c.Start)
			for step := range c.Grads {
				require.InEpsilon(t, c.Norms[step], double.update(t, c.Grads[step], c.LR), 1e-12)
				require.InEpsilon(t, c.Norms[step], single.update(t, cast[float32](c.Grads[step]), c.LR), 1e-6)
				for p := range shapes {
					require.InDeltaSlice(t, c.After[step][p], double.state[p], 1e-9, "step %d: scalars are float32", step)
					require.InDeltaSlice(t, c.After[step][p], cast[float64]([][]float64{toFloat64(single.state[p])})[0], 1e-6,
						"step %d", step)
				}
			}
			require.Equal(t, len(c.Grads), single.step)
		})
	}
}

func toFloat64(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// plainState is parameters and both moments, which a step overwrites.
type plainState struct{ p, m, v []float64 }

// plainAdamW is one step in plain Go on float64, by the formulas of the paper.
func plainAdamW(c AdamW, s plainState, g []float64, t int, lr float64) {
	p, m, v := s.p, s.m, s.v
	norm := 0.0
	for _, x := range g {
		norm = math.Hypot(norm, x)
	}
	clip := 1.0
	if c.MaxGradNorm > 0 && norm > c.MaxGradNorm {
		clip = c.MaxGradNorm / norm
	}
	for i := range p {
		m[i] += (1 - c.Beta1) * (clip*g[i] - m[i])
		v[i] += (1 - c.Beta2) * (clip*g[i]*clip*g[i] - v[i])
		mHat := m[i] / (1 - math.Pow(c.Beta1, float64(t)))
		vHat := v[i] / (1 - math.Pow(c.Beta2, float64(t)))
		p[i] -= lr * (mHat/(math.Sqrt(vHat)+c.Eps) + c.WeightDecay*p[i])
	}
}

// TestAdamW_MatchesPlainGo runs long enough for the bias corrections to fade, with a beta2 that float32 powers would
// get wrong.
func TestAdamW_MatchesPlainGo(t *testing.T) {
	device := graphtest.Device(t)
	for name, cfg := range map[string]AdamW{
		"default":       DefaultAdamW(),
		"sft":           {Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, MaxGradNorm: 1},
		"no momentum":   {Beta2: 0.99, Eps: 1e-8},
		"no adaptation": {Beta1: 0.9, Eps: 1e-4, WeightDecay: 0.01, MaxGradNorm: -1},
	} {
		t.Run(name, func(t *testing.T) {
			start := [][]float64{{1, -2, 0.5, 0, 1e-3, 3}}
			p := append([]float64{}, start[0]...)
			m, v := make([]float64, 6), make([]float64, 6)
			o := newOptimizer(t, device, cfg, [][]int{{2, 3}}, cast[float32](start))
			for step := range 200 {
				g := make([]float64, 6)
				for i := range g {
					g[i] = float64(float32(math.Sin(float64(7*step+3*i)) * math.Pow(10, float64(i-3))))
				}
				plainAdamW(cfg, plainState{p, m, v}, g, step+1, 1e-3)
				o.update(t, cast[float32]([][]float64{g}), 1e-3)
				require.InDeltaSlice(t, p, toFloat64(o.state[0]), 2e-5, "step %d", step)
			}
			require.InDeltaSlice(t, m, toFloat64(o.state[1]), 1e-4*norm(m))
			require.InDeltaSlice(t, v, toFloat64(o.state[2]), 1e-4*norm(v))
		})
	}
}

func norm(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum = math.Hypot(sum, v)
	}
	return sum
}

// TestAdamW_NonFiniteGradientChangesNothing: one bad number in one tensor, and no bit of the whole state moves.
func TestAdamW_NonFiniteGradientChangesNothing(t *testing.T) {
	device := graphtest.Device(t)
	shapes := [][]int{{2, 2}, {3}}
	start := [][]float32{{1, 2, 3, 4}, {5, 6, 7}}
	for name, bad := range map[string]float32{
		"nan": float32(math.NaN()), "inf": float32(math.Inf(1)), "-inf": float32(math.Inf(-1)), "overflow of the norm": 1e30,
	} {
		t.Run(name, func(t *testing.T) {
			for _, cfg := range []AdamW{DefaultAdamW(), {Eps: 1e-8}} {
				skipping := newOptimizer(t, device, cfg, shapes, start)
				straight := newOptimizer(t, device, cfg, shapes, start)
				good := [][]float32{{1, -1, 2, 0}, {0.5, 0, 1}}
				both := func() {
					skipping.update(t, good, 0.1)
					straight.update(t, good, 0.1)
				}
				both()
				require.NotEqual(t, start[0], skipping.state[0])
				before := fmt.Sprint(skipping.state)
				got := skipping.update(t, [][]float32{{1, -1, 2, 0}, {0.5, bad, 1}}, 0.1)
				require.False(t, finite(got), "norm %v", got)
				require.Equal(t, before, fmt.Sprint(skipping.state))
				both()
				require.Equal(t, straight.state, skipping.state, "training does not go on as if nothing had been")
			}
		})
	}
}

func TestClipScale(t *testing.T) {
	device := graphtest.Device(t)
	for _, c := range []struct{ norm, maxNorm, want float64 }{
		{0, 0.1, 1}, {0.05, 0.1, 1}, {1, 0.1, 0.1}, {50, 0.1, 0.002}, {50, 0, 1}, {50, -1, 1}, {3, 1, 1.0 / 3},
	} {
		out := graphtest.Run(t, device, func(in []*graph.Node) []*graph.Node {
			return []*graph.Node{clipScale(in[0], c.maxNorm)}
		}, scalar(c.norm))
		require.InDelta(t, c.want, graphtest.Values[float64](t, out[0])[0], 2e-6, "%+v", c)
	}
}

func TestGlobalNorm(t *testing.T) {
	out := graphtest.Run(t, graphtest.Device(t), func(in []*graph.Node) []*graph.Node {
		return []*graph.Node{GlobalNorm(in), GlobalNorm(in[:1])}
	}, tensors.FromFlatDataAndDimensions([]float32{1, 2, 0, -2}, 2, 2), vector([]float32{-4}))
	require.Equal(t, []float32{5}, graphtest.Values[float32](t, out[0]))
	require.Equal(t, []float32{3}, graphtest.Values[float32](t, out[1]))
	require.Error(t, graphx.Try(func() { GlobalNorm(nil) }))
}

func TestAdamW_Misuse(t *testing.T) {
	device := graphtest.Device(t)
	step := func(cfg AdamW, corrupt func(s *AdamWState)) error {
		return graphx.Try(func() {
			g := graph.NewGraph(device, "misuse")
			x := func(n int) *graph.Node { return graph.Const(g, make([]float32, n)) }
			state := AdamWState{Params: []*graph.Node{x(2)}, M: []*graph.Node{x(2)}, V: []*graph.Node{x(2)}}
			corrupt(&state)
			cfg.Step(state, []*graph.Node{x(2)}, x(NumScalars))
		})
	}
	require.NoError(t, step(DefaultAdamW(), func(*AdamWState) {}))
	require.ErrorContains(t, step(DefaultAdamW(), func(s *AdamWState) { s.M = nil }), "moments")
	require.Error(t,
		step(DefaultAdamW(), func(s *AdamWState) { s.V[0] = graph.Const(s.V[0].Graph(), make([]float32, 3)) }))
	err := step(AdamW{Beta1: 1, Beta2: -0.5, WeightDecay: math.NaN(), MaxGradNorm: math.Inf(1)}, func(*AdamWState) {})
	for _, want := range []string{"beta1 is 1", "beta2 is -0.5", "eps is 0", "weight decay is NaN",
		"max grad norm is +Inf"} {
		require.ErrorContains(t, err, want)
	}
}
