package model

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"

	"github.com/goart-dev/art/internal/dev/fixtures"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/safetensors"
	"github.com/goart-dev/art/lora"
)

// The tests of this file run over all fixtures of internal/dev/testdata/architectures. Those were made with
// transformers 4.57.1 or 5.24.0 and torch 2.15.0 on a CPU: python3 internal/dev/testdata/architectures/make.py.

// eachFixture calls test with each fixture and its weights.
func eachFixture(t *testing.T, test func(t *testing.T, m *fixtures.Model, w *Weights)) {
	for _, m := range fixtures.Models(t) {
		t.Run(m.Name, func(t *testing.T) {
			w, err := Load(m.Dir)
			require.NoError(t, err)
			test(t, &m, w)
		})
	}
}

// withLogits compiles a model that returns its logits. a may be nil.
func withLogits(t *testing.T, w *Weights, a *lora.Adapter) *forward {
	t.Helper()
	var extra []*tensors.Tensor
	if a != nil {
		for _, p := range a.Params() {
			extra = append(extra, graphtest.Tensor(p.Data, p.Shape...))
		}
	}
	f := newForward(t, w, extra, nil)
	exec, err := graph.NewExec(graphtest.Device(t), func(in []*graph.Node) []*graph.Node {
		m := &Forward{Config: w.Config, Param: f.params.Lookup(in)}
		if a != nil {
			m.Linear, _ = a.Hooks(lora.Nodes{Trained: in[len(in)-1-len(extra) : len(in)-1]})
		}
		hidden, _ := m.Hidden(Input{Tokens: in[len(in)-1]})
		return []*graph.Node{m.Logits(graph.Reshape(hidden, -1, w.Config.HiddenSize))}
	})
	require.NoError(t, err)
	t.Cleanup(exec.Finalize)
	f.exec = exec.SetMaxCache(-1)
	return f
}

// TestArchitectures_AllHaveFixtures: an architecture that is not compared with its reference is not supported.
func TestArchitectures_AllHaveFixtures(t *testing.T) {
	var want, got []string
	for _, a := range architectures() {
		want = append(want, a.modelType)
	}
	eachFixture(t, func(_ *testing.T, _ *fixtures.Model, w *Weights) { got = append(got, w.Config.ModelType) })
	require.Equal(t, want, slices.Compact(slices.Sorted(slices.Values(got))))
	require.IsIncreasing(t, want)
}

func TestArchitectures_MatchTransformers(t *testing.T) {
	eachFixture(t, func(t *testing.T, m *fixtures.Model, w *Weights) {
		agree(t, m.Logits, withLogits(t, w, nil).logprobs(t, m.Flat(), len(m.IDs)))
	})
}

// agree compares logits.
func agree(t *testing.T, want, got []float32) {
	t.Helper()
	require.Len(t, got, len(want))
	worst := 0.0
	for i := range want {
		worst = max(worst, math.Abs(float64(want[i])-float64(got[i])))
	}
	t.Logf("largest difference %.2g", worst)
	require.LessOrEqual(t, worst, 1e-4)
}

// TestArchitectures_AdapterMatchesPEFT: an adapter that PEFT 0.17.1 or 0.21.2 wrote computes the same here, and so do
// the weights that it is merged into.
func TestArchitectures_AdapterMatchesPEFT(t *testing.T) {
	adapted := 0
	eachFixture(t, func(t *testing.T, m *fixtures.Model, w *Weights) {
		if m.Adapter == "" {
			return
		}
		adapted++
		a, err := lora.Load(m.Adapter)
		require.NoError(t, err)
		require.NoError(t, a.Check(layersOf(w.Config)))
		agree(t, m.Adapted, withLogits(t, w, a).logprobs(t, m.Flat(), len(m.IDs)))
		merge(t, w, a)
		agree(t, m.Adapted, withLogits(t, w, nil).logprobs(t, m.Flat(), len(m.IDs)))
	})
	require.Equal(t, 5, adapted)
}

// layersOf lists the layers that an adapter may attach to.
func layersOf(c *Config) (list []lora.LayerShape) {
	for _, l := range c.Linears() {
		list = append(list, lora.LayerShape(l))
	}
	return list
}

// merge adds an adapter to the weights.
func merge(t *testing.T, w *Weights, a *lora.Adapter) {
	t.Helper()
	for _, l := range a.Layers() {
		require.NoError(t, a.Merge(find(t, w, l.Name+".weight").Data, l.Name))
	}
}

// TestArchitectures_DefaultTargets: without targets an adapter attaches to all linear layers of the blocks.
func TestArchitectures_DefaultTargets(t *testing.T) {
	eachFixture(t, func(t *testing.T, _ *fixtures.Model, w *Weights) {
		a, err := lora.New(lora.Config{}, layersOf(w.Config), seed)
		require.NoError(t, err)
		require.Len(t, a.Layers(), len(w.Config.Linears()))
	})
}

// TestArchitectures_HookSeesLinears: the hook is called for what Adaptable lists but the embedding, and nothing else.
func TestArchitectures_HookSeesLinears(t *testing.T) {
	eachFixture(t, func(t *testing.T, m *fixtures.Model, w *Weights) {
		var want, seen []string
		for _, l := range w.Config.Adaptable() {
			if !l.Embedding {
				want = append(want, fmt.Sprintf("%s %d %d", l.Name, l.In, l.Out))
			}
		}
		newForward(t, w, nil, func([]*graph.Node) linearHook {
			return func(x *graph.Node, name string, base func(*graph.Node) *graph.Node) *graph.Node {
				y := base(x)
				seen = append(seen, fmt.Sprintf("%s %d %d", name, x.Shape().Dim(-1), y.Shape().Dim(-1)))
				return y
			}
		}).logprobs(t, m.IDs[0], 1)
		require.ElementsMatch(t, want, seen)
	})
}

// TestArchitectures_ExpertsHaveNoAdapters: an adapter that names an expert is refused, and says what there is.
func TestArchitectures_ExpertsHaveNoAdapters(t *testing.T) {
	eachFixture(t, func(t *testing.T, _ *fixtures.Model, w *Weights) {
		if w.Config.NumExperts == 0 {
			return
		}
		expert := lora.LayerShape{Name: "model.layers.1.mlp.experts.0.up_proj", In: w.Config.HiddenSize,
			Out: w.Config.MoEIntermediateSize}
		a, err := lora.New(lora.Config{Targets: []string{"up_proj"}}, []lora.LayerShape{expert}, seed)
		require.NoError(t, err)
		require.ErrorContains(t, a.Check(layersOf(w.Config)), `no layer "model.layers.1.mlp.experts.0.up_proj" that an `+
			`adapter may attach to; it has k_proj, o_proj, q_proj, v_proj`)
	})
}

// TestArchitectures_GreedyMatchesTransformers: 32 tokens, each computed without a cache.
func TestArchitectures_GreedyMatchesTransformers(t *testing.T) {
	eachFixture(t, func(t *testing.T, m *fixtures.Model, w *Weights) {
		f, v := newForward(t, w, nil, nil), w.Config.VocabSize
		ids := slices.Clone(m.Prompt)
		for range m.Greedy {
			padded := make([]int32, 48)
			got := f.logprobs(t, append(ids[:len(ids):len(ids)], padded[len(ids):]...), 1)
			last := got[(len(ids)-1)*v : len(ids)*v]
			ids = append(ids, int32(slices.Index(last, slices.Max(last))))
		}
		require.Equal(t, m.Greedy, ids[len(m.Prompt):])
	})
}

// TestArchitectures_Parity: company, padding and the cache change no bit.
func TestArchitectures_Parity(t *testing.T) {
	eachFixture(t, func(t *testing.T, m *fixtures.Model, w *Weights) {
		f, v := newForward(t, w, nil, nil), w.Config.VocabSize
		ids, length := m.IDs[0], len(m.IDs[0])
		want := f.logprobs(t, ids, 1)
		rng := rand.New(rand.NewPCG(seed, 50))

		padded := append(ids[:length:length], testTokens(rng, w.Config, 9)...)
		got := f.logprobs(t,
			slices.Concat(testTokens(rng, w.Config, 3*len(padded)), padded, testTokens(rng, w.Config, len(padded))), 5)
		sameBits(t, want, got[3*len(padded)*v:3*len(padded)*v+len(want)], "the fourth of five, padded, seed %d", seed)

		c, start := newCached(t, f, 2, 40), []int32{0, 0}
		for _, width := range []int{9, 1, 4, 1, 9} {
			piece := slices.Concat(ids[start[0]:int(start[0])+width], testTokens(rng, w.Config, width))
			got := c.logprobs(t, piece, start, []int{width, width})
			sameBits(t, want[int(start[0])*v:(int(start[0])+width)*v], got[:width*v], "%d tokens after %d, seed %d", width,
				start[0], seed)
			start[0], start[1] = start[0]+int32(width), start[1]+int32(width)
		}
	})
}

// TestArchitectures_RoundTrip: a configuration that is written and read again is the same, and so is the model.
func TestArchitectures_RoundTrip(t *testing.T) {
	eachFixture(t, func(t *testing.T, _ *fixtures.Model, w *Weights) {
		dir := t.TempDir()
		require.NoError(t, w.Save(dir))
		got, err := Load(dir)
		require.NoError(t, err)
		require.Equal(t, w.Config, got.Config)
		sameWeights(t, w, got)
	})
}

// TestTokenLogProbs_FrozenGradient: the gradient that is written down for a frozen head is the one that is derived,
// with scaled and capped logits too.
func TestTokenLogProbs_FrozenGradient(t *testing.T) {
	eachFixture(t, func(t *testing.T, _ *fixtures.Model, w *Weights) {
		c := w.Config
		params, err := w.Params(graphtest.Device(t))
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(seed, 51))
		hidden := make([]float32, 5*c.HiddenSize)
		for i := range hidden {
			hidden[i] = float32(rng.NormFloat64())
		}
		gradient := func(frozen bool) []float32 {
			in := append(params.Tensors[:len(params.Tensors):len(params.Tensors)],
				graphtest.Tensor(hidden, 5, c.HiddenSize), graphtest.Tensor(testTokens(rand.New(rand.NewPCG(seed, 52)), c, 5), 5,
					1))
			out := graphtest.Run(t, graphtest.Device(t), func(in []*graph.Node) []*graph.Node {
				f, n := &Forward{Config: c, Param: params.Lookup(in), Frozen: frozen}, len(params.Names)
				return graph.Gradient(graph.ReduceAllSum(f.TokenLogProbs(in[n], in[n+1])), in[n])
			}, in...)
			return graphtest.Values[float32](t, out[0])
		}
		require.InDeltaSlice(t, gradient(false), gradient(true), 1e-4, "seed %d", seed)
	})
}

// TestArchitectures_GradientMatchesFiniteDifferences differentiates the loss along a random direction through all
// weights, and through each tensor of the first layer, and of the first experts, alone; see
// TestForward_GradientMatchesFiniteDifferences. The weights are larger here and the loss is less smooth, so the steps
// are smaller, and rounding shows more.
func TestArchitectures_GradientMatchesFiniteDifferences(t *testing.T) {
	eachFixture(t, func(t *testing.T, m *fixtures.Model, w *Weights) {
		l := newLossOf(t, w.Config, m.Flat(), len(m.IDs))
		_, grads := l.gradient(t, w)
		rng := rand.New(rand.NewPCG(seed, 53))
		formula, moves := fourPoints, [][]int{nil}
		formula.Step = 0.001
		for i, x := range w.Tensors {
			if strings.HasPrefix(x.Name, w.Config.layerName(0)) || w.Config.NumExperts > 0 &&
				strings.HasPrefix(x.Name, "model.layers.1.mlp.") {
				moves = append(moves, []int{i})
			}
		}
		for _, moving := range moves {
			along := direction(rng, grads, moving)
			want := 0.0
			for i, d := range along {
				for j := range d {
					want += d[j] * float64(grads[i][j])
				}
			}
			require.Greater(t, math.Abs(want), 1e-3, "the direction %v shows nothing", moving)
			got := fd.Derivative(func(h float64) float64 { return l.near(t, w, along, h) }, 0, &fd.Settings{Formula: formula})
			require.InDelta(t, want, got, 3e-4+1e-3*math.Abs(want), "tensors %v, seed %d", moving, seed)
		}
	})
}

var export = flag.String("export", "", "folder that TestArchitectures_Export writes")

// TestArchitectures_Export writes, for check.py beside make.py, each model as it is saved here, an adapter of ours, the
// model that it is merged into, and the logits of all that:
//
//	go test ./model -run Export -export DIR && python3 internal/dev/testdata/architectures/check.py DIR
func TestArchitectures_Export(t *testing.T) {
	if *export == "" {
		t.Skip("for a comparison by hand; see -export")
	}
	eachFixture(t, func(t *testing.T, m *fixtures.Model, w *Weights) {
		dir := filepath.Join(*export, m.Name)
		sub := func(name string) string {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
			return filepath.Join(dir, name)
		}
		a, _ := testAdapter(t, w.Config, 4, false)
		c, err := Open(m.Dir)
		require.NoError(t, err)
		require.NoError(t, c.Save(sub("saved"), nil))
		require.NoError(t, a.Save(sub("adapter"), "base"))
		plain := withLogits(t, w, nil).logprobs(t, m.Flat(), len(m.IDs))
		adapted := withLogits(t, w, a).logprobs(t, m.Flat(), len(m.IDs))
		require.NoError(t, c.Save(sub("merged"), &SaveOptions{Edit: func(name string, values []float32) error {
			layer := strings.TrimSuffix(name, weightSuffix)
			if _, ok := a.Layer(layer); !ok {
				return nil
			}
			return a.Merge(values, layer)
		}}))
		require.NoError(t, c.Close())
		shape := []int{len(m.IDs), len(m.IDs[0]), w.Config.VocabSize}
		f, err := os.Create(filepath.Join(dir, "logits.safetensors"))
		require.NoError(t, err)
		require.NoError(t, safetensors.Write(f, []safetensors.Tensor{
			safetensors.NewFloat32("plain", shape, plain), safetensors.NewFloat32("adapted", shape, adapted),
		}, nil))
		require.NoError(t, f.Close())
	})
}
