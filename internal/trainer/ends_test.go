package trainer

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// adaptable lists the layers of a model that an adapter may attach to.
func adaptable(c *model.Config) (layers []lora.LayerShape) {
	for _, l := range c.Adaptable() {
		layers = append(layers, lora.LayerShape(l))
	}
	return layers
}

// endsSubject trains an adapter of the embedding, the head and the second layer, with random numbers in all matrices.
func endsSubject(t *testing.T, tied bool) subject {
	t.Helper()
	c := testConfig()
	c.TieEmbeddings = tied
	a, err := lora.New(lora.Config{Rank: 4, Pattern: `lm_head|.*embed_tokens|model\.layers\.1\..*`}, adaptable(c), seed)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(seed, 2))
	for _, l := range a.Layers() {
		for _, list := range [][]float32{l.A, l.B} {
			for i := range list {
				list[i] = float32(rng.NormFloat64() * 0.1)
			}
		}
	}
	return adapted(t, c, a)
}

// TestEnds_Gradient: adapters of embedding and head have the gradient of finite differences, the same bits with layers
// that are computed again, and the logprobs of the sampler.
func TestEnds_Gradient(t *testing.T) {
	for _, tied := range []bool{false, true} {
		s := endsSubject(t, tied)
		rng := rand.New(rand.NewPCG(seed, 12))
		batch := randomBatch(rng, 4, 64, 40)
		start := s.scoreAll(t, s.state.Params, batch)
		got, err := s.trainer(t, Options{}).Logprobs(t.Context(), s.state, batch, 0)
		require.NoError(t, err)
		for i := range batch {
			for j, trained := range batch[i].Trained {
				if trained {
					require.InDelta(t, start[i][j], got[i][j], graphtest.Rounding(), "%d %d", i, j)
				}
			}
		}
		awayFromKinks(rng, batch, start)
		loss := losses["cispo"]
		grads, _ := gradientOf(t, &s, Options{}, batch, Run{Loss: loss})
		again, _ := gradientOf(t, &s, Options{Recompute: true}, batch, Run{Loss: loss})
		sameBits(t, grads, again, "recomputed")
		along, want := direction(rng, grads)
		near := func(h float64) float64 {
			params := clone(s.state.Params)
			for i := range params {
				for j := range params[i] {
					params[i][j] += float32(h * along[i][j])
				}
			}
			return loss.plain(batch, s.scoreAll(t, params, batch), start)
		}
		require.Greater(t, math.Abs(want), 0.01)
		require.InEpsilon(t, want, fd.Derivative(near, 0, &fd.Settings{Formula: fourPoints}), 0.002, "seed %d", seed)
	}
}

// TestEnds_AsPEFT: an adapter of embedding, head and the layers of a pattern that PEFT saved computes what it computes
// there, with the hooks and merged, and PEFT's own copy of the base's embedding and head is left alone.
func TestEnds_AsPEFT(t *testing.T) {
	const dir = "../../lora/testdata/ends"
	w, err := model.Load(dir + "/base")
	require.NoError(t, err)
	a, err := lora.Load(dir + "/adapter")
	require.NoError(t, err)
	require.NoError(t, a.Check(adaptable(w.Config)))
	require.Len(t, a.Layers(), 9)
	var golden struct {
		IDs    []int32
		Logits [][]float64
	}
	content, err := os.ReadFile(dir + ".json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &golden))
	n := len(golden.IDs)
	batch := []grpo.Sequence{{IDs: golden.IDs, Trained: make([]bool, n), Logprobs: make([]float32, n), Weight: 1}}
	for i := range golden.IDs[1:] {
		batch[0].Trained[i+1] = true
	}
	check := func(target Target, state *State) {
		requireLogprobs(t, golden.Logits, target, state, batch, 1e-4)
	}
	params, err := w.Params(graphtest.Device(t))
	require.NoError(t, err)
	check(AdapterTarget(w.Config, params, a), AdapterState(a))
	for i := range w.Tensors {
		x := &w.Tensors[i]
		for _, l := range a.Layers() {
			if l.Name+".weight" == x.Name {
				require.NoError(t, a.Merge(x.Data, l.Name))
			}
		}
	}
	check(FullTarget(w.Config), FullState(w))
}

// TestEnds_EstimateBoundsPlan: logits that are kept are in the estimate.
func TestEnds_EstimateBoundsPlan(t *testing.T) {
	c := smallQwen()
	for _, target := range []string{"lm_head", "embed_tokens"} {
		layout, err := lora.New(lora.Config{Targets: []string{target}}, adaptable(c), 0)
		require.NoError(t, err)
		for _, recompute := range []bool{false, true} {
			opts := Options{Device: graphtest.CPU(t), Workers: 1, MicroTokens: 512, Recompute: recompute}
			planned, err := Plan(c, layout, 256, opts)
			require.NoError(t, err)
			work := estimate(c, layout, opts, 256).Work
			require.GreaterOrEqual(t, work, planned.Work, "%s %v", target, recompute)
			t.Logf("%s %v: estimated %.2f of the plan's %.1f MB", target, recompute, work/planned.Work, planned.Work/1e6)
		}
	}
}

// requireLogprobs compares the logprobs of a sequence with logits [tokens, vocabulary] of PEFT.
func requireLogprobs(
	t *testing.T, logits [][]float64, target Target, state *State, batch []grpo.Sequence, tolerance float64,
) {
	t.Helper()
	got, err := New(target, Options{Device: graphtest.Device(t)}).Logprobs(t.Context(), state, batch, 0)
	require.NoError(t, err)
	ids := batch[0].IDs
	for i, row := range logits[:len(ids)-1] {
		sum := 0.0
		for _, z := range row {
			sum += math.Exp(z)
		}
		require.InDelta(t, row[ids[i+1]]-math.Log(sum), got[0][i+1], tolerance, "token %d", i+1)
	}
}
