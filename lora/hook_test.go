package lora

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

const hooked = "model.layers.0.self_attn.q_proj"

// params makes a and b the matrices of the layer hooked, and of no other.
func params(a, b *graph.Node) func(string) (*graph.Node, *graph.Node, bool) {
	return func(name string) (*graph.Node, *graph.Node, bool) { return a, b, name == hooked }
}

func TestHook_ZeroBIsBase(t *testing.T) {
	device := graphtest.Device(t)
	src := rand.New(rand.NewPCG(20, 1))
	const in, out, rank = 33, 17, 8
	x, w, a := normal(src, 30*in), normal(src, out*in), normal(src, in*rank)
	for _, dims := range [][]int{{30, in}, {5, 6, in}, {1, 30, in}} {
		outs := graphtest.Run(t, device, func(n []*graph.Node) []*graph.Node {
			hook := Config{}.hook(params(n[2], n[3]))
			return []*graph.Node{linear(n[1])(n[0]), hook(n[0], hooked, linear(n[1]))}
		}, graphtest.Tensor(x, dims...), graphtest.Tensor(w, out, in), graphtest.Tensor(a, in, rank),
			graphtest.Tensor(make([]float32, rank*out), rank, out))
		want, got := graphtest.Values[float32](t, outs[0]), graphtest.Values[float32](t, outs[1])
		require.Equal(t, outs[0].Shape(), outs[1].Shape())
		require.Len(t, got, 30*out)
		for i := range want {
			require.Equal(t, math.Float32bits(want[i]), math.Float32bits(got[i]), "element %d of %v", i, dims)
		}
	}
}

func TestHook_LeavesOtherLayersAlone(t *testing.T) {
	g := graph.NewGraph(graphtest.Device(t), "other")
	x, y := graph.Const(g, []float32{1}), graph.Const(g, []float32{2})
	hook := Config{}.hook(params(nil, nil))
	got := hook(x, "lm_head", func(in *graph.Node) *graph.Node {
		require.Same(t, x, in)
		return y
	})
	require.Same(t, y, got)
}

// plainLayer is a layer with its adapter: w and b are [out, ...], a is [rank, in].
type plainLayer struct {
	w, a, b       []float64
	in, rank, out int
	scale         float64
}

// apply is base(x) + scale·(x·Aᵀ)·Bᵀ in plain Go.
func (l plainLayer) apply(x []float64) []float64 {
	var y []float64
	for ; len(x) > 0; x = x[l.in:] {
		for o := range l.out {
			sum := 0.0
			for i := range l.in {
				weight := l.w[o*l.in+i]
				for r := range l.rank {
					weight += l.scale * l.b[o*l.rank+r] * l.a[r*l.in+i]
				}
				sum += weight * x[i]
			}
			y = append(y, sum)
		}
	}
	return y
}

// widen converts to float64.
func widen(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

func TestHook_GradientMatchesFiniteDifferences(t *testing.T) {
	device := graphtest.Device(t)
	src := rand.New(rand.NewPCG(21, 1))
	const m, in, out, rank = 4, 5, 3, 2
	cfg := Config{Rank: rank, Alpha: 3}
	x, w := widen(normal(src, m*in)), widen(normal(src, out*in))
	a, b, target := widen(normal(src, rank*in)), widen(normal(src, out*rank)), widen(normal(src, m*out))

	// The loss is Σ tanh(y)·target; its arguments are A, then B, in PEFT's layout.
	plain := func(ab []float64) float64 {
		sum := 0.0
		for i, y := range (plainLayer{w, ab[:rank*in], ab[rank*in:], in, rank, out, 1.5}).apply(x) {
			sum += math.Tanh(y) * target[i]
		}
		return sum
	}
	outs := graphtest.Run(t, device, func(n []*graph.Node) []*graph.Node {
		y := cfg.hook(params(n[2], n[3]))(n[0], hooked, linear(n[1]))
		loss := graph.ReduceAllSum(graph.Mul(graph.Tanh(y), n[4]))
		return append([]*graph.Node{loss}, graph.Gradient(loss, n[2], n[3])...)
	}, graphtest.Tensor(x, 2, 2, in), graphtest.Tensor(w, out, in), transposed(a, rank, in), transposed(b, out, rank),
		graphtest.Tensor(target, 2, 2, out))

	ab := slices.Concat(a, b)
	require.InEpsilon(t, plain(ab), graphtest.Values[float64](t, outs[0])[0], 1e-12)
	want := fd.Gradient(nil, plain, ab, &fd.Settings{Formula: fd.Central, Step: 1e-5})
	require.InDeltaSlice(t, want[:rank*in], flip(graphtest.Values[float64](t, outs[1]), in, rank), 1e-7)
	require.InDeltaSlice(t, want[rank*in:], flip(graphtest.Values[float64](t, outs[2]), rank, out), 1e-7)
	require.Greater(t, math.Abs(want[0]), 1e-3)
}

// flip is transpose for float64.
func flip(x []float64, rows, cols int) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i%cols*rows+i/cols] = v
	}
	return out
}

// transposed returns x [rows, cols] as a tensor [cols, rows].
func transposed(x []float64, rows, cols int) *tensors.Tensor {
	return graphtest.Tensor(flip(x, rows, cols), cols, rows)
}

// TestHook_AdapterPerSequence: several adapters in one call give each sequence what its adapter gives alone, to 1e-5.
func TestHook_AdapterPerSequence(t *testing.T) {
	device := graphtest.Device(t)
	src := rand.New(rand.NewPCG(22, 1))
	const p, rows, in, out, rank = 3, 4, 6, 5, 2
	cfg := Config{Rank: rank}
	x, w := normal(src, p*rows*in), normal(src, out*in)
	a, b := normal(src, p*in*rank), normal(src, p*rank*out)
	for _, dims := range [][]int{{p, rows, in}, {p * rows, in}} { // models may flatten rows
		outs := graphtest.Run(t, device, func(n []*graph.Node) []*graph.Node {
			return []*graph.Node{cfg.hook(params(n[2], n[3]))(n[0], hooked, linear(n[1]))}
		}, graphtest.Tensor(x, dims...), graphtest.Tensor(w, out, in), graphtest.Tensor(a, p, in, rank),
			graphtest.Tensor(b, p, rank, out))
		got := graphtest.Values[float32](t, outs[0])
		for i := range p {
			alone := graphtest.Run(t, device, func(n []*graph.Node) []*graph.Node {
				return []*graph.Node{cfg.hook(params(n[2], n[3]))(n[0], hooked, linear(n[1]))}
			}, graphtest.Tensor(x[i*rows*in:(i+1)*rows*in], rows, in), graphtest.Tensor(w, out, in),
				graphtest.Tensor(a[i*in*rank:(i+1)*in*rank], in, rank), graphtest.Tensor(b[i*rank*out:(i+1)*rank*out], rank, out))
			require.InDeltaSlice(t, graphtest.Values[float32](t, alone[0]), got[i*rows*out:(i+1)*rows*out], 1e-5, "adapter %d",
				i)
		}
	}
}

// TestHook_MixedDTypes: a float32 adapter on a bfloat16 model computes in float32 and returns bfloat16.
func TestHook_MixedDTypes(t *testing.T) {
	out := graphtest.Run(t, graphtest.Device(t), func(n []*graph.Node) []*graph.Node {
		x := graph.ConvertDType(n[0], dtypes.BFloat16)
		y := Config{Rank: 1, Alpha: 1}.hook(params(n[1], n[2]))(x, hooked, func(x *graph.Node) *graph.Node { return x })
		require.Equal(t, dtypes.BFloat16, y.DType())
		return []*graph.Node{graph.ConvertDType(y, dtypes.Float32)}
	}, graphtest.Tensor([]float32{1, 2}, 1, 2), graphtest.Tensor([]float32{1, 0.5}, 2, 1),
		graphtest.Tensor([]float32{3, -0.25}, 1, 2))
	require.Equal(t, []float32{1 + 2*3, 2 - 2*0.25}, graphtest.Values[float32](t, out[0]))
}

func TestHook_Misuse(t *testing.T) {
	device := graphtest.Device(t)
	build := func(dimsA, dimsB []int) error {
		return graphx.Try(func() {
			g := graph.NewGraph(device, "misuse")
			zeros := func(dims ...int) *graph.Node {
				return graph.ConstCachedTensor(g, tensors.FromFlatDataAndDimensions(make([]float32, product(dims)), dims...))
			}
			Config{Rank: 2}.hook(params(zeros(dimsA...), zeros(dimsB...)))(zeros(6, 4), hooked, linear(zeros(3, 4)))
		})
	}
	require.NoError(t, build([]int{4, 2}, []int{2, 3}))
	require.NoError(t, build([]int{2, 4, 2}, []int{2, 2, 3}))
	require.Error(t, build([]int{2, 4}, []int{2, 3}), "A in PEFT's layout")
	require.Error(t, build([]int{4, 3}, []int{3, 3}), "another rank")
	require.Error(t, build([]int{4, 2}, []int{2, 5}), "another output")
	require.Error(t, build([]int{4, 4, 2}, []int{4, 2, 3}), "6 rows for 4 adapters")
	require.ErrorContains(t, build([]int{8}, []int{6}), hooked)
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

func TestLookup(t *testing.T) {
	a := newAdapter(t, Config{Rank: 2})
	g := graph.NewGraph(graphtest.Device(t), "lookup")
	var nodes []*graph.Node
	for _, p := range a.Params() {
		nodes = append(nodes, graph.Const(g, graphtest.Tensor(p.Data, p.Shape...)))
	}
	lookup := a.lookup(nodes)
	for _, l := range a.Layers() {
		na, nb, ok := lookup(l.Name)
		require.True(t, ok)
		na.AssertDims(l.In, 2)
		nb.AssertDims(2, l.Out)
	}
	_, _, ok := lookup("lm_head")
	require.False(t, ok)
	require.Error(t, graphx.Try(func() { a.lookup(nodes[:3]) }))
}

func TestMerge_EqualsHook(t *testing.T) {
	device := graphtest.Device(t)
	a := newAdapter(t, Config{Rank: 3, Alpha: 5})
	src := rand.New(rand.NewPCG(23, 1))
	for _, l := range a.Layers() {
		for _, data := range [][]float32{l.A, l.B} { // of the size that training leaves
			for i := range data {
				data[i] *= 0.1
			}
		}
		x, w := normal(src, 7*l.In), normal(src, l.Out*l.In)
		merged := slices.Clone(w)
		require.NoError(t, a.Merge(merged, l.Name))
		require.NotEqual(t, w, merged)
		args := []*tensors.Tensor{graphtest.Tensor(x, 7, l.In), graphtest.Tensor(w, l.Out, l.In),
			graphtest.Tensor(merged, l.Out, l.In)}
		for _, p := range a.Params() {
			args = append(args, graphtest.Tensor(p.Data, p.Shape...))
		}
		outs := graphtest.Run(t, device, func(n []*graph.Node) []*graph.Node {
			hook := a.Config().hook(a.lookup(n[3:]))
			return []*graph.Node{hook(n[0], l.Name, linear(n[1])), linear(n[2])(n[0])}
		}, args...)
		want, got := graphtest.Values[float32](t, outs[0]), graphtest.Values[float32](t, outs[1])
		require.NotEqual(t, make([]float32, len(want)), want)
		for i := range want {
			require.InDelta(t, want[i], got[i], 1e-6*max(1, math.Abs(float64(want[i])))*4, "%s", l.Name)
		}
	}
}

func TestMerge_Errors(t *testing.T) {
	a := newAdapter(t, Config{})
	require.ErrorContains(t, a.Merge(make([]float32, 240), "lm_head"), `"lm_head" has no adapter`)
	require.ErrorContains(t, a.Merge(make([]float32, 47), hooked), "47 numbers, want 8 x 6")
}

// peftLayer is what PEFT computed with testdata/peft at one layer; testdata/golden.py writes it.
type peftLayer struct{ X, Y, W, Merged [][]float32 }

func readPEFTGolden(t *testing.T) map[string]peftLayer {
	t.Helper()
	content, err := os.ReadFile("testdata/golden.json")
	require.NoError(t, err)
	var golden map[string]peftLayer
	require.NoError(t, json.Unmarshal(content, &golden))
	require.Len(t, golden, 7)
	return golden
}

// TestPEFT_ComputesTheSame loads an adapter that PEFT saved and compares every layer: with hook, and merged.
func TestPEFT_ComputesTheSame(t *testing.T) {
	device := graphtest.Device(t)
	a, err := Load("testdata/peft")
	require.NoError(t, err)
	require.Equal(t, 3, a.Config().Rank)
	require.Equal(t, 5.0, a.Config().Alpha)
	require.ElementsMatch(t, DefaultTargets(), a.Config().Targets)
	for name, want := range readPEFTGolden(t) {
		l, ok := a.Layer(name)
		require.True(t, ok, name)
		w := slices.Concat(want.W...)
		args := []*tensors.Tensor{graphtest.Tensor(slices.Concat(want.X...), len(want.X), l.In),
			graphtest.Tensor(w, l.Out, l.In)}
		for _, p := range a.Params() {
			args = append(args, graphtest.Tensor(p.Data, p.Shape...))
		}
		outs := graphtest.Run(t, device, func(n []*graph.Node) []*graph.Node {
			return []*graph.Node{a.Config().hook(a.lookup(n[2:]))(n[0], name, linear(n[1]))}
		}, args...)
		require.InDeltaSlice(t, slices.Concat(want.Y...), graphtest.Values[float32](t, outs[0]), 1e-6, name)
		require.NoError(t, a.Merge(w, name))
		require.InDeltaSlice(t, slices.Concat(want.Merged...), w, 1e-6, name)
	}
}

// TestPatterns_RankAndAlphaOfLayers: layers have the rank and the scale of the first pattern that matches, in
// parameters, graph and merged weights, and so they are written and read. rsLoRA divides by the root.
func TestPatterns_RankAndAlphaOfLayers(t *testing.T) {
	cfg := Config{Rank: 4, Alpha: 6, Targets: []string{"q_proj", "down_proj"}, RankStabilized: true,
		Ranks: map[string]int{"down_proj": 1, `layers\.1\..*q_proj`: 2}, Alphas: map[string]float64{"q_proj": 3}}
	a := newAdapter(t, cfg)
	for layer, want := range map[string]struct {
		rank  int
		scale float64
	}{
		"model.layers.0.self_attn.q_proj": {4, 3.0 / 2}, "model.layers.1.self_attn.q_proj": {2, 3 / math.Sqrt2},
		"model.layers.0.mlp.down_proj": {1, 6}, "model.layers.1.mlp.down_proj": {1, 6},
	} {
		require.Equal(t, want.rank, a.Config().LayerRank(layer), layer)
		require.InEpsilon(t, want.scale, a.Config().Scale(layer), 1e-12, layer)
		l, ok := a.Layer(layer)
		require.True(t, ok)
		require.Len(t, l.A, want.rank*l.In)
		require.Len(t, l.B, want.rank*l.Out)
		merged := make([]float32, l.Out*l.In)
		require.NoError(t, a.Merge(merged, layer))
		for o := range l.Out {
			for i := range l.In {
				sum := 0.0
				for r := range want.rank {
					sum += float64(l.B[o*want.rank+r]) * float64(l.A[r*l.In+i])
				}
				require.InDelta(t, want.scale*sum, merged[o*l.In+i], 1e-5, layer)
			}
		}
	}
	dir := t.TempDir()
	require.NoError(t, a.Save(dir, "base"))
	read, err := Load(dir)
	require.NoError(t, err)
	require.Equal(t, a.Config(), read.Config())
	require.Equal(t, a.Params(), read.Params())
	var config map[string]any
	require.NoError(t, json.Unmarshal([]byte(readAll(t, dir)[configFile]), &config))
	require.Equal(t, true, config["use_rslora"])
	require.Equal(t, map[string]any{"down_proj": 1.0, `layers\.1\..*q_proj`: 2.0}, config["rank_pattern"])
	require.Equal(t, map[string]any{"q_proj": 3.0}, config["alpha_pattern"])

	device := graphtest.Device(t)
	for _, l := range a.Layers() {
		src := rand.New(rand.NewPCG(5, 5))
		x, w := normal(src, 3*l.In), normal(src, l.Out*l.In)
		merged := slices.Clone(w)
		require.NoError(t, a.Merge(merged, l.Name))
		args := []*tensors.Tensor{graphtest.Tensor(x, 3, l.In), graphtest.Tensor(w, l.Out, l.In),
			graphtest.Tensor(merged, l.Out, l.In)}
		for _, p := range a.Params() {
			args = append(args, graphtest.Tensor(p.Data, p.Shape...))
		}
		outs := graphtest.Run(t, device, func(n []*graph.Node) []*graph.Node {
			return []*graph.Node{a.Config().hook(a.lookup(n[3:]))(n[0], l.Name, linear(n[1])), linear(n[2])(n[0])}
		}, args...)
		require.InDeltaSlice(t, graphtest.Values[float32](t, outs[0]), graphtest.Values[float32](t, outs[1]), 1e-3)
	}
	for text, cfg := range map[string]Config{
		"must be positive": {Ranks: map[string]int{"q_proj": 0}}, "pattern": {Alphas: map[string]float64{"(": 1}},
	} {
		require.ErrorContains(t, cfg.Validate(), text)
	}
}
