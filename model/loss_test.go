package model

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// lossOf is the mean negative log-likelihood of all tokens but the first of each row, as a function of every weight.
type lossOf struct {
	config         *Config
	names          []string
	at             [][]int32 // the position before each of these tokens, in all rows, and its id
	ids            *tensors.Tensor
	value, descent *graph.Exec // logprobs of the tokens; the same, then the gradients
}

func newLossOf(t testing.TB, c *Config, ids []int32, rows int) *lossOf {
	t.Helper()
	l := &lossOf{config: c, ids: graphtest.Tensor(ids, rows, len(ids)/rows)}
	for _, s := range c.Specs() {
		l.names = append(l.names, s.Name)
	}
	for i := range ids {
		if i%(len(ids)/rows) > 0 {
			l.at = append(l.at, []int32{int32(i - 1), ids[i]})
		}
	}
	l.value = l.compile(t, func(_ []*graph.Node, logprobs *graph.Node) []*graph.Node { return []*graph.Node{logprobs} })
	l.descent = l.compile(t, func(weights []*graph.Node, logprobs *graph.Node) []*graph.Node {
		return append([]*graph.Node{logprobs}, graph.Gradient(graph.Neg(graph.ReduceAllMean(logprobs)), weights...)...)
	})
	return l
}

func (l *lossOf) compile(
	t testing.TB, outputs func(weights []*graph.Node, logprobs *graph.Node) []*graph.Node,
) *graph.Exec {
	t.Helper()
	params := &Params{Names: l.names}
	exec, err := graph.NewExec(graphtest.Device(t), func(in []*graph.Node) []*graph.Node {
		weights, tokens := in[:len(in)-1], in[len(in)-1]
		f := &Forward{Config: l.config, Param: params.Lookup(weights)}
		hidden, _ := f.Hidden(Input{Tokens: tokens})
		all := f.LogProbs(graph.Reshape(hidden, -1, l.config.HiddenSize))
		return outputs(weights, graph.Gather(all, graph.Const(tokens.Graph(), l.at)))
	})
	require.NoError(t, err)
	t.Cleanup(exec.Finalize)
	return exec
}

// run returns the loss, added up in float64, and what else the graph returns.
func (l *lossOf) run(t testing.TB, exec *graph.Exec, w *Weights) (loss float64, rest []*tensors.Tensor) {
	t.Helper()
	var in []*tensors.Tensor
	for _, x := range w.Tensors {
		in = append(in, graphtest.Tensor(x.Data, x.Shape...))
	}
	out := graphtest.Call(t, exec, append(in, l.ids)...)
	for _, lp := range graphtest.Values[float32](t, out[0]) {
		loss -= float64(lp) / float64(len(l.at))
	}
	return loss, out[1:]
}

// gradient returns the loss and its gradients, in the shapes of the graph.
func (l *lossOf) gradient(t testing.TB, w *Weights) (loss float64, grads [][]float32) {
	t.Helper()
	loss, out := l.run(t, l.descent, w)
	for _, x := range out {
		grads = append(grads, graphtest.Values[float32](t, x))
	}
	return loss, grads
}

// TestTokenEntropy: with a frozen head, which keeps no logits, the entropy and its gradient are those of all logprobs,
// with scaled and capped logits too.
func TestTokenEntropy(t *testing.T) {
	const n = 5
	rng := rand.New(rand.NewPCG(seed, 311))
	for _, c := range []struct {
		name       string
		cap, scale float64
	}{{"plain", 0, 0}, {"capped", 1.5, 0}, {"scaled", 0, 3}} {
		config := &Config{
			ModelType: "granite", HiddenAct: "silu", VocabSize: 40, HiddenSize: 8, IntermediateSize: 8, NumLayers: 1,
			NumHeads: 1, NumKVHeads: 1, HeadDim: 8, MaxPositions: 8, RMSNormEps: 1e-6, TieEmbeddings: true,
			LogitsScaling: c.scale,
		}
		if c.cap != 0 {
			config.ModelType, config.FinalSoftCap = "gemma3_text", c.cap
		}
		hidden := graphtest.Tensor(normals(rng, []int{n, 8}), n, 8)
		head := graphtest.Tensor(normals(rng, []int{40, 8}), 40, 8)
		run := func(frozen bool) (entropy, gradient []float32) {
			out := graphtest.Run(t, graphtest.Device(t), func(in []*graph.Node) []*graph.Node {
				params := &Params{Names: []string{"model.embed_tokens.weight"}}
				f := &Forward{Config: config, Param: params.Lookup(in[1:]), Frozen: frozen}
				e := f.TokenEntropy(in[0])
				weights := graph.OnePlus(graph.Iota(e.Graph(), e.Shape(), 0))
				return []*graph.Node{e, graph.Gradient(graph.ReduceAllSum(graph.Mul(e, weights)), in[0])[0]}
			}, hidden, head)
			return graphtest.Values[float32](t, out[0]), graphtest.Values[float32](t, out[1])
		}
		want, wantGradient := run(false)
		got, gradient := run(true)
		require.Less(t, relative(want, got), 2e-6, "%s, seed %d", c.name, seed)
		require.Less(t, relative(wantGradient, gradient), 1e-5, "%s, seed %d", c.name, seed)
		require.Greater(t, got[0], float32(0.1), c.name)
	}
}
