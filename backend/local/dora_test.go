package local

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/lora"
)

// doraModel is a model with DoRA, embedding and head among its layers.
func doraModel(name string) *art.Model {
	return art.NewModel(name, &art.ModelOptions{
		Seed: 4, LoRA: art.LoRA{Rank: 3, DoRA: true, Targets: append(lora.DefaultTargets(), "embed_tokens", "lm_head")},
		Chat: art.ChatOptions{MaxTokens: new(7)},
	})
}

// doraStep makes a step of a registered model, with a KL penalty against the base model.
func doraStep(t *testing.T, m *art.Model) map[string]float64 {
	t.Helper()
	groups, err := art.GatherGroups(t.Context(), []string{"7+5=", "What is 31-12?"}, twoTurns(m),
		&art.GatherOptions{GroupSize: 6})
	require.NoError(t, err)
	result, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 2e-3, KL: credit.KL{Coef: 0.1}})
	require.NoError(t, err)
	require.Positive(t, result.Metrics["data/tokens_trained"])
	return result.Metrics
}

// TestDoRA_Run: a new adapter is the base model; magnitudes are trained; the sampler computes the trainer's logprobs,
// bit for bit, at every step; and a run that was closed goes on to the same bytes as one that was not.
func TestDoRA_Run(t *testing.T) {
	var last []string
	for _, reopen := range []bool{false, true} {
		dir := t.TempDir()
		b := open(t, dir)
		m := doraModel("m")
		require.NoError(t, m.Register(t.Context(), b))
		if !reopen {
			frozen := art.NewModel("frozen", &art.ModelOptions{Frozen: true})
			require.NoError(t, frozen.Register(t.Context(), b))
			require.Equal(t, says(t, frozen), says(t, m))
		}
		first := doraStep(t, m)
		require.Zero(t, first["train/logprob_gap_max"])
		require.Zero(t, first["loss/kl_ref"], "the base model is the reference")
		if reopen {
			require.NoError(t, b.Close())
			b = open(t, dir)
			m = doraModel("m")
			require.NoError(t, m.Register(t.Context(), b))
			require.Equal(t, 1, m.Step())
		}
		second := doraStep(t, m)
		require.Zero(t, second["train/logprob_gap_max"])
		require.Positive(t, second["loss/kl_ref"])
		run, err := b.Dir(m)
		require.NoError(t, err)
		a, err := lora.Load(filepath.Join(run, "checkpoints", "0000"))
		require.NoError(t, err)
		trained, err := lora.Load(filepath.Join(run, "checkpoints", "0002"))
		require.NoError(t, err)
		for i, l := range trained.Layers() {
			require.NotEqual(t, a.Layers()[i].Magnitude, l.Magnitude, l.Name)
		}
		var files []string
		for _, name := range checkpointFiles {
			files = append(files, string(file(t, b, m, 2, name)))
		}
		if last != nil {
			require.True(t, strings.Join(last, "") == strings.Join(files, ""), "other bytes after a restart")
		}
		last = files
		if !reopen {
			got, err := b.Replay(t.Context(), run, 1)
			require.NoError(t, err)
			require.True(t, got.Equal)
		}
	}
}

// TestDoRA_Options: an adapter with DoRA is another run than one without, starts another run from its folder, and is
// exported merged.
func TestDoRA_Options(t *testing.T) {
	b := open(t, t.TempDir())
	opts := art.ModelOptions{LoRA: art.LoRA{Rank: 2, DoRA: true}, Chat: art.ChatOptions{MaxTokens: new(7)}}
	first := trained(t, b, "first", &opts)
	run, err := b.Dir(first)
	require.NoError(t, err)
	folder := filepath.Join(run, "checkpoints", "0001")
	second := art.NewModel("second", &art.ModelOptions{Adapter: folder})
	require.NoError(t, second.Register(t.Context(), b))
	require.Equal(t, adapterBytes(t, b, first, 1), adapterBytes(t, b, second, 0))
	require.Equal(t, says(t, first), says(t, second))

	merged := filepath.Join(t.TempDir(), "merged")
	require.NoError(t, b.Export(t.Context(), first, merged, nil))
	alone := art.NewModel("alone", &art.ModelOptions{Base: merged, Frozen: true})
	require.NoError(t, alone.Register(t.Context(), b))
	require.Equal(t, says(t, first), says(t, alone))

	require.NoError(t, b.Release(t.Context(), first))
	opts.LoRA.DoRA = false
	err = art.NewModel("first", &opts).Register(t.Context(), b)
	require.ErrorContains(t, err, "LoRA.DoRA was true and is now false")
	opts = art.ModelOptions{Adapter: folder, LoRA: art.LoRA{DoRA: true}}
	require.ErrorContains(t, art.NewModel("third", &opts).Register(t.Context(), b), "LoRA and Adapter are both set")

	plain := trained(t, b, "plain", &art.ModelOptions{LoRA: art.LoRA{Rank: 2}})
	require.ErrorContains(t, b.LoadWeights(t.Context(), plain, "second@0", false), "only one of the two is DoRA")
}
