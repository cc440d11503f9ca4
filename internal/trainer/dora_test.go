package trainer

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// doraGolden is what PEFT computes, in float64; lora/testdata/dora.py writes it.
type doraGolden struct {
	IDs    []int32
	Logits [][]float64
	Start  map[string][]float32 // magnitudes of a new adapter
	Grads  map[string]any       // of the sum of all losses: vectors and matrices, in PEFT's layout
}

func readDoRA(t *testing.T) (golden doraGolden, w *model.Weights, a *lora.Adapter) {
	t.Helper()
	const dir = "../../lora/testdata/dora"
	content, err := os.ReadFile(dir + ".json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &golden))
	w, err = model.Load(dir + "/base")
	require.NoError(t, err)
	a, err = lora.Load(dir + "/adapter")
	require.NoError(t, err)
	require.NoError(t, a.Check(adaptable(w.Config)))
	require.Len(t, a.Layers(), 16)
	return golden, w, a
}

// sequence is the one of a golden, trained on but for its first token.
func (g *doraGolden) sequence() []grpo.Sequence {
	n := len(g.IDs)
	s := grpo.Sequence{IDs: g.IDs, Trained: make([]bool, n), Logprobs: make([]float32, n), Weight: 1, Advantage: 1}
	for i := range g.IDs[1:] {
		s.Trained[i+1] = true
	}
	return []grpo.Sequence{s}
}

// TestDoRA_AsPEFT: an adapter of all layers, biased ones, the embedding and the head too, computes what PEFT computes
// with it, by the hooks and merged.
func TestDoRA_AsPEFT(t *testing.T) {
	golden, w, a := readDoRA(t)
	batch := golden.sequence()
	check := func(target Target, state *State) {
		requireLogprobs(t, golden.Logits, target, state, batch, 1e-5)
	}
	params, err := w.Params(graphtest.Device(t))
	require.NoError(t, err)
	check(AdapterTarget(w.Config, params, a), AdapterState(a))
	for i := range w.Tensors {
		x := &w.Tensors[i]
		if _, ok := a.Layer(strings.TrimSuffix(x.Name, ".weight")); ok {
			require.NoError(t, a.Merge(x.Data, strings.TrimSuffix(x.Name, ".weight")))
		}
	}
	check(FullTarget(w.Config), FullState(w))
}

// TestDoRA_StartsAsPEFT: the magnitudes of a new adapter are PEFT's.
func TestDoRA_StartsAsPEFT(t *testing.T) {
	golden, w, a := readDoRA(t)
	params, err := w.Params(graphtest.Device(t))
	require.NoError(t, err)
	fresh, err := lora.New(lora.Config{DoRA: true, Targets: a.Config().Targets}, adaptable(w.Config), seed)
	require.NoError(t, err)
	require.NoError(t, fresh.InitMagnitudes(graphtest.Device(t),
		func(layer string) *tensors.Tensor { return params.Weight(w.Config, layer) }))
	require.Len(t, golden.Start, 16)
	for _, l := range fresh.Layers() {
		want := golden.Start[l.Name+".lora_magnitude_vector"]
		require.InDeltaSlice(t, want, l.Magnitude, 1e-6, l.Name)
	}
}

// TestDoRA_GradientAsPEFT: A, B and magnitudes have the gradients of autograd in PEFT, whose norms are constants.
func TestDoRA_GradientAsPEFT(t *testing.T) {
	golden, w, a := readDoRA(t)
	params, err := w.Params(graphtest.Device(t))
	require.NoError(t, err)
	on, err := New(AdapterTarget(w.Config, params, a), Options{Device: graphtest.Device(t)}).Start(AdapterState(a))
	require.NoError(t, err)
	defer on.Free()
	p, err := on.ForwardBackward(t.Context(), golden.sequence(), grpo.SupervisedLoss{})
	require.NoError(t, err)
	require.Greater(t, p.Loss, 1.0)
	grads := onHost(t, on.grads)
	require.Len(t, grads, len(golden.Grads))
	for i, name := range on.shapes.Names {
		theirs, ok := golden.Grads[name]
		if !ok {
			theirs = golden.Grads[strings.Replace(name, ".lora_", ".lora_embedding_", 1)]
		}
		want := flatten(t, theirs)
		require.Len(t, grads[i], len(want), name)
		difference, length := distance([][]float32{want}, grads[i:i+1])
		require.Greater(t, length, 1e-3, name)
		require.Less(t, difference, 1e-5*length, name)
	}
}

// flatten returns the numbers of a vector, or of the transpose of a matrix, of JSON.
func flatten(t *testing.T, value any) (out []float32) {
	t.Helper()
	rows, ok := value.([]any)
	require.True(t, ok)
	if _, ok := rows[0].(float64); ok {
		for _, v := range rows {
			out = append(out, float32(v.(float64)))
		}
		return out
	}
	for column := range rows[0].([]any) {
		for _, row := range rows {
			out = append(out, float32(row.([]any)[column].(float64)))
		}
	}
	return out
}

// TestDoRA_SameBits: layers that are computed again, and shared beginnings, change no bit of the gradients or logprobs;
// and an adapter that changes nothing has the bits of the base model.
func TestDoRA_SameBits(t *testing.T) {
	_, w, a := readDoRA(t)
	params, err := w.Params(graphtest.Device(t))
	require.NoError(t, err)
	s := subject{name: "dora", weights: w, target: AdapterTarget(w.Config, params, a), state: AdapterState(a)}
	rng := rand.New(rand.NewPCG(seed, 40))
	batch := randomTree(rng, 4, 40, 40)
	for i := range batch {
		for j := range batch[i].Logprobs {
			batch[i].Logprobs[j] = -float32(rng.ExpFloat64())
		}
	}
	run := Run{Loss: grpo.SupervisedLoss{}}
	want, _ := gradientOf(t, &s, Options{}, batch, run)
	got, _ := gradientOf(t, &s, Options{Recompute: true}, batch, run)
	sameBits(t, want, got, "recomputed")

	trainer := s.trainer(t, Options{})
	together, err := trainer.Logprobs(t.Context(), s.state, batch, 0)
	require.NoError(t, err)
	alone, err := s.trainer(t, Options{Alone: true}).Logprobs(t.Context(), s.state, batch, 1)
	require.NoError(t, err)
	sameBits(t, alone, together, "shared")

	base, err := trainer.BaseState(s.state)
	require.NoError(t, err)
	of, err := trainer.Logprobs(t.Context(), base, batch, 0)
	require.NoError(t, err)
	plain, err := lora.New(lora.Config{Rank: 1}, adaptable(w.Config), seed)
	require.NoError(t, err)
	p := New(AdapterTarget(w.Config, params, plain), Options{Device: graphtest.Device(t)})
	want, err = p.Logprobs(t.Context(), AdapterState(plain), batch, 0)
	require.NoError(t, err)
	sameBits(t, want, of, "base model")
	require.NotEqual(t, together, of)
	zero, err := p.BaseState(AdapterState(plain))
	require.NoError(t, err)
	got, err = p.Logprobs(t.Context(), zero, batch, 0)
	require.NoError(t, err)
	sameBits(t, want, got, "base model without DoRA")
}

// TestDoRA_EstimateBoundsPlan: what is kept of layers before they are scaled is in the estimate, and norms in the plan.
func TestDoRA_EstimateBoundsPlan(t *testing.T) {
	c := smallQwen()
	layout, err := lora.New(lora.Config{DoRA: true}, linears(c), 0)
	require.NoError(t, err)
	without, err := lora.New(lora.Config{}, linears(c), 0)
	require.NoError(t, err)
	for _, recompute := range []bool{false, true} {
		opts := Options{Device: graphtest.CPU(t), Workers: 1, MicroTokens: 512, Recompute: recompute}
		planned, err := Plan(c, layout, 256, opts)
		require.NoError(t, err)
		plain, err := Plan(c, without, 256, opts)
		require.NoError(t, err)
		require.Greater(t, planned.Work, plain.Work)
		require.Greater(t, planned.Adapter, plain.Adapter)
		work := estimate(c, layout, opts, 256).Work
		require.GreaterOrEqual(t, work, planned.Work, "%v", recompute)
		t.Logf("recompute %v: %.1f MB in place of %.1f; estimated %.2f of it", recompute, planned.Work/1e6,
			plain.Work/1e6, work/planned.Work)
	}
}
