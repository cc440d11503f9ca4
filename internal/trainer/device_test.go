package trainer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

const seed = 7

// testConfig has only dimensions that are whole vectors, at least two of them.
func testConfig() *model.Config {
	return &model.Config{
		ModelType: "qwen3", HiddenAct: "silu", VocabSize: 64, HiddenSize: 32, IntermediateSize: 48,
		NumLayers: 1, NumHeads: 2, NumKVHeads: 1, HeadDim: 32, MaxPositions: 128, RMSNormEps: 1e-6, RopeTheta: 10000,
		TieEmbeddings: true,
	}
}

func testWeights(t testing.TB, c *model.Config) *model.Weights {
	t.Helper()
	w, err := model.Random(c, seed)
	require.NoError(t, err)
	return w
}

// testAdapter has random B, unless it is to start as training does.
func testAdapter(t testing.TB, cfg lora.Config, c *model.Config, fresh bool) *lora.Adapter {
	t.Helper()
	var shapes []lora.LayerShape
	for _, l := range c.Linears() {
		shapes = append(shapes, lora.LayerShape(l))
	}
	a, err := lora.New(cfg, shapes, seed)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, l := range a.Layers() {
		for i := range l.B {
			if !fresh {
				l.B[i] = float32(rng.NormFloat64() * 0.1)
			}
		}
	}
	return a
}

// subject is something to train, and how it was made.
type subject struct {
	name    string
	weights *model.Weights
	adapter *lora.Adapter // nil when all weights are trained
	target  Target
	state   *State
	scorer  *scorer
}

// full trains all weights.
func full(t testing.TB, c *model.Config) subject {
	t.Helper()
	w := testWeights(t, c)
	return subject{name: "full", weights: w, target: FullTarget(c), state: FullState(w)}
}

// adapted trains an adapter.
func adapted(t testing.TB, c *model.Config, a *lora.Adapter) subject {
	t.Helper()
	w := testWeights(t, c)
	params, err := w.Params(graphtest.Device(t))
	require.NoError(t, err)
	return subject{name: "adapter", weights: w, adapter: a, target: AdapterTarget(c, params, a), state: AdapterState(a)}
}

// both are all weights, and an adapter of rank 4 on all layers.
func both(t testing.TB) []subject {
	t.Helper()
	c := testConfig()
	return []subject{full(t, c), adapted(t, c, testAdapter(t, lora.Config{Rank: 4}, c, false))}
}

// trainer returns a trainer of s.
func (s *subject) trainer(t testing.TB, opts Options) *Trainer {
	t.Helper()
	opts.Device = graphtest.Device(t)
	return New(s.target, opts)
}

// scorer computes logprobs with package model, of one sequence at a time.
type scorer struct {
	exec   *graph.Exec
	frozen []*tensors.Tensor
}

// newScorer compiles the model as the sampler has it.
func (s *subject) newScorer(t testing.TB) *scorer {
	t.Helper()
	n := len(s.state.Params)
	forward := func(params, _ []*graph.Node) *model.Forward {
		return &model.Forward{Config: s.weights.Config, Param: (&model.Params{Names: s.state.Names}).Lookup(params)}
	}
	sc := &scorer{}
	if s.adapter != nil {
		base, err := s.weights.Params(graphtest.Device(t))
		require.NoError(t, err)
		sc.frozen = base.Tensors
		forward = func(params, frozen []*graph.Node) *model.Forward {
			f := &model.Forward{Config: s.weights.Config, Param: base.Lookup(frozen)}
			f.Linear, f.Embedding = s.adapter.Hooks(lora.Nodes{Trained: params})
			return f
		}
	}
	var err error
	sc.exec, err = graph.NewExec(graphtest.Device(t), func(in []*graph.Node) *graph.Node {
		f := forward(in[1:1+n], in[1+n:])
		hidden, _ := f.Hidden(model.Input{Tokens: in[0]})
		return f.LogProbs(graph.Reshape(hidden, -1, f.Config.HiddenSize))
	})
	require.NoError(t, err)
	sc.exec.SetMaxCache(-1)
	return sc
}

// score returns the logprobs of the ids of a sequence, each after those before it, from one pass over the sequence
// alone. params are in the order of the state. The first one is 0.
func (s *subject) score(t testing.TB, params [][]float32, ids []int32) []float32 {
	t.Helper()
	if s.scorer == nil {
		s.scorer = s.newScorer(t)
	}
	padded := make([]int32, max(32, (len(ids)+15)/16*16))
	copy(padded, ids)
	in := []any{tensors.FromFlatDataAndDimensions(padded, 1, len(padded))}
	for i, p := range params {
		in = append(in, tensors.FromFlatDataAndDimensions(append([]float32{}, p...), s.state.Shapes[i]...))
	}
	for _, x := range s.scorer.frozen {
		in = append(in, x)
	}
	out, err := s.scorer.exec.Call1(in...)
	require.NoError(t, err)
	all := tensors.MustCopyFlatData[float32](out)
	lps := make([]float32, len(ids))
	for i := 1; i < len(ids); i++ {
		lps[i] = all[(i-1)*s.weights.Config.VocabSize+int(ids[i])]
	}
	return lps
}

// randomSequence has a prompt and turns of which every second is trained.
func randomSequence(rng *rand.Rand, vocabulary, most int) grpo.Sequence {
	n := 3 + rng.IntN(most-2)
	s := grpo.Sequence{Advantage: rng.NormFloat64(), Weight: 0.5 + rng.Float64()}
	trained := false
	for i := range n {
		if i > 0 && rng.IntN(6) == 0 {
			trained = !trained
		}
		s.IDs = append(s.IDs, int32(rng.IntN(vocabulary)))
		s.Trained = append(s.Trained, trained)
		s.Logprobs = append(s.Logprobs, -float32(rng.ExpFloat64()))
	}
	s.Trained[1+rng.IntN(n-1)] = true
	return s
}

func randomBatch(rng *rand.Rand, n, vocabulary, most int) []grpo.Sequence {
	batch := make([]grpo.Sequence, n)
	for i := range batch {
		batch[i] = randomSequence(rng, vocabulary, most)
		batch[i].Trajectory = i
	}
	return batch
}

// scored sets the logprobs of sequences to those of the state, each off by noise.
func (s *subject) scored(t testing.TB, batch []grpo.Sequence, noise func() float32) []grpo.Sequence {
	t.Helper()
	for i := range batch {
		batch[i].Logprobs = s.score(t, s.state.Params, batch[i].IDs)
		for j := range batch[i].Logprobs {
			batch[i].Logprobs[j] = min(0, batch[i].Logprobs[j]+noise())
		}
	}
	return batch
}

// constant is a learning rate that does not change.
func constant(rate float64) func(int) float64 { return func(int) float64 { return rate } }

// plainRun is one supervised update over the whole batch.
func plainRun() Run {
	return Run{
		Loss: grpo.SupervisedLoss{}, Optimizer: grpo.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8},
		Rate: constant(1e-2), Epochs: 1, MiniBatches: 1,
	}
}

// distance is the Euclidean length of a - b, and of a.
func distance(a, b [][]float32) (difference, length float64) {
	for i := range a {
		for j := range a[i] {
			d := float64(a[i][j]) - float64(b[i][j])
			difference += d * d
			length += float64(a[i][j]) * float64(a[i][j])
		}
	}
	return math.Sqrt(difference), math.Sqrt(length)
}

// sameBits compares lists bit for bit, or within rounding: see graphtest.SameBits.
func sameBits(t testing.TB, want, got [][]float32, message string) {
	t.Helper()
	require.Len(t, got, len(want), message)
	for i := range want {
		graphtest.SameBits(t, want[i], got[i], "%s: list %d", message, i)
	}
}

// sameMetrics compares metrics, which are equal, or within rounding: see graphtest.SameBits.
func sameMetrics(t testing.TB, want, got map[string]float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for name, v := range want {
		require.InDelta(t, v, got[name], graphtest.Rounding()*max(1, math.Abs(v)), name)
	}
}

// sameDifference compares differences of logprobs, each of which is equal, or within rounding: see graphtest.SameBits.
func sameDifference(t testing.TB, want, got Difference, message string) {
	t.Helper()
	require.Equal(t, want.Tokens, got.Tokens, message)
	require.InDelta(t, want.Max, got.Max, graphtest.Rounding(), message)
	require.InDelta(t, want.Sum, got.Sum, graphtest.Rounding()*float64(want.Tokens), message)
}

// sameState compares all of a state bit for bit.
func sameState(t testing.TB, want, got *State) {
	t.Helper()
	require.Equal(t, want.Names, got.Names)
	require.Equal(t, want.Shapes, got.Shapes)
	require.Equal(t, want.Updates, got.Updates)
	sameBits(t, want.Params, got.Params, "parameters")
	sameBits(t, want.M, got.M, "first moments")
	sameBits(t, want.V, got.V, "second moments")
}

// copyOf returns a deep copy.
func copyOf(s *State) *State {
	return &State{
		Names: slices.Clone(s.Names), Shapes: slices.Clone(s.Shapes),
		Params: clone(s.Params), M: clone(s.M), V: clone(s.V), Updates: s.Updates,
	}
}

func clone(lists [][]float32) (out [][]float32) {
	for _, x := range lists {
		out = append(out, slices.Clone(x))
	}
	return out
}
