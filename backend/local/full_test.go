package local

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/model"
)

// fullModel is a model all of whose weights are trained.
func fullModel(name string) *art.Model {
	return art.NewModel(name, &art.ModelOptions{Seed: 4, Full: true, Chat: art.ChatOptions{MaxTokens: new(7)}})
}

// fullStep makes a step of a registered model, with a KL penalty against the base model.
func fullStep(t *testing.T, m *art.Model) map[string]float64 {
	t.Helper()
	groups, err := art.GatherGroups(t.Context(), []string{"7+5=", "What is 31-12?"}, twoTurns(m),
		&art.GatherOptions{GroupSize: 4})
	require.NoError(t, err)
	result, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 2e-4, KL: credit.KL{Coef: 0.1}})
	require.NoError(t, err)
	require.Positive(t, result.Metrics["data/tokens_trained"])
	require.Zero(t, result.Metrics["train/logprob_gap_max"])
	require.NotEmpty(t, result.Ratios)
	for _, ratio := range result.Ratios {
		require.Equal(t, float32(1), ratio, "trainer and sampler are one policy")
	}
	return result.Metrics
}

// fullFiles are what a step consists of.
var fullFiles = []string{"model.safetensors", "config.json", "tokenizer.json", "optimizer.safetensors", "trainer.json"}

// TestFull_Run: a run begins as the base model; all tensors are trained; the sampler computes the trainer's logprobs,
// bit for bit, at every step; a run that was closed goes on to the same bytes as one that was not; and a step replays.
func TestFull_Run(t *testing.T) {
	var last []string
	for _, reopen := range []bool{false, true} {
		dir := t.TempDir()
		b := open(t, dir)
		m := fullModel("m")
		require.NoError(t, m.Register(t.Context(), b))
		require.Zero(t, fullStep(t, m)["loss/kl_ref"], "the base model is the reference")
		if reopen {
			require.NoError(t, b.Close())
			b = open(t, dir)
			m = fullModel("m")
			require.NoError(t, m.Register(t.Context(), b))
			require.Equal(t, 1, m.Step())
		}
		require.Positive(t, fullStep(t, m)["loss/kl_ref"])
		var files []string
		for _, name := range fullFiles {
			files = append(files, string(file(t, b, m, 2, name)))
		}
		if last != nil {
			require.True(t, slices.Equal(last, files), "other bytes after a restart")
			continue
		}
		last = files
		run, err := b.Dir(m)
		require.NoError(t, err)
		first, err := model.Load(filepath.Join(run, "checkpoints", "0000"))
		require.NoError(t, err)
		second, err := model.Load(filepath.Join(run, "checkpoints", "0002"))
		require.NoError(t, err)
		for i, x := range first.Tensors {
			require.NotEqual(t, x.Data, second.Tensors[i].Data, x.Name)
		}
		got, err := b.Replay(t.Context(), run, 1)
		require.NoError(t, err)
		require.True(t, got.Equal)
	}
}

// TestFull_Weights: a step is a base model of its own, is exported, begins another run, is gone back to, and is saved
// and loaded; older steps answer.
func TestFull_Weights(t *testing.T) {
	b := open(t, t.TempDir())
	frozen := art.NewModel("frozen", &art.ModelOptions{Frozen: true})
	require.NoError(t, frozen.Register(t.Context(), b))
	m := fullModel("m")
	require.NoError(t, m.Register(t.Context(), b))
	base := says(t, frozen)
	require.Equal(t, base, says(t, m))
	lesson := art.NewTrajectory(art.User("Write a number."), art.Assistant("no no no"))
	_, err := m.TrainSFT(t.Context(), []*art.Trajectory{lesson}, &art.SFTConfig{LearningRate: 1e-3, Epochs: 8})
	require.NoError(t, err)
	learned := says(t, m)
	require.NotEqual(t, base, learned)
	require.Equal(t, base, says(t, frozen), "the base model is shared, and stays")

	run, err := b.Dir(m)
	require.NoError(t, err)
	exported := filepath.Join(t.TempDir(), "exported")
	require.NoError(t, b.Export(t.Context(), m, exported, nil))
	for _, dir := range []string{filepath.Join(run, "checkpoints", "0001"), exported} {
		alone := art.NewModel("alone"+filepath.Base(dir), &art.ModelOptions{Base: dir, Frozen: true})
		require.NoError(t, alone.Register(t.Context(), b))
		require.Equal(t, learned, says(t, alone))
	}
	fork := art.NewModel("fork", &art.ModelOptions{Fork: "m"})
	require.NoError(t, fork.Register(t.Context(), b))
	require.Equal(t, learned, says(t, fork))
	for _, name := range fullFiles {
		require.True(t, string(file(t, b, m, 1, name)) == string(file(t, b, fork, 0, name)), name)
	}
	saved, err := loop.SaveWeights(t.Context(), m, "kept", true)
	require.NoError(t, err)
	_, err = m.Restore(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, base, says(t, m))
	pin, err := m.PinStep(t.Context(), 1)
	require.NoError(t, err)
	answer, err := m.Complete(pin.Context(t.Context()), ask("Write a number."),
		&art.ChatOptions{Temperature: new(0.0), MaxTokens: new(12)})
	require.NoError(t, err)
	require.Equal(t, learned, answer.Message.Content)
	require.NoError(t, loop.LoadWeights(t.Context(), m, saved, true))
	_, err = m.Publish(t.Context(), nil, nil)
	require.NoError(t, err)
	require.Equal(t, learned, says(t, m))

	adapter := art.NewModel("adapter", nil)
	require.NoError(t, adapter.Register(t.Context(), b))
	require.ErrorContains(t, loop.LoadWeights(t.Context(), adapter, saved, true), "all weights")
}

// TestFull_Refused: what cannot be is an error when a model is registered.
func TestFull_Refused(t *testing.T) {
	b := open(t, t.TempDir())
	for want, opts := range map[string]art.ModelOptions{
		"Full and LoRA are both set":   {Full: true, LoRA: art.LoRA{Rank: 4}},
		"Full and Frozen are both set": {Full: true, Frozen: true},
		"Full is set, and Adapter":     {Full: true, Fork: "x"},
	} {
		err := art.NewModel("m", &opts).Register(t.Context(), b)
		require.ErrorIs(t, err, art.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
	m := fullModel("m")
	require.NoError(t, m.Register(t.Context(), b))
	require.NoError(t, b.Release(t.Context(), m))
	err := art.NewModel("m", &art.ModelOptions{Seed: 4}).Register(t.Context(), b)
	require.ErrorContains(t, err, "Full was true and is now false")

	small := open(t, t.TempDir())
	free := art.NewModel("frozen", &art.ModelOptions{Frozen: true})
	require.NoError(t, free.Register(t.Context(), small))
	small.memory.Free = func() (int64, bool) { return 40 << 20, true }
	small.memory.Held = nil
	err = fullModel("m").Register(t.Context(), small)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, "a training of all weights takes at least ")
	require.True(t, strings.Contains(err.Error(), "0.04 GiB are free"), err)

	half, err := Open(t.Context(), &Options{Dir: t.TempDir(), Weights: "bfloat16"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, half.Close()) })
	require.ErrorContains(t, fullModel("m").Register(t.Context(), half), "trained in float32")
}
