package local

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/gguftest"
)

// TestRegister_GGUF: the built-in model as a GGUF file computes what the built-in model computes, and a run on it is
// resumed with the same file, wherever it is then. Such a file names a known way to cut words, and the built-in model
// has its own, so that the ids are given.
func TestRegister_GGUF(t *testing.T) {
	b, path := open(t, t.TempDir()), gguftest.Folder(t, "../../model/tiny")
	logprobs := func(name, base string) []float32 {
		m := art.NewModel(name, &art.ModelOptions{Base: base, Frozen: true})
		require.NoError(t, m.Register(t.Context(), b))
		scores, _, err := b.Logprobs(t.Context(), m, []int32{72, 101, 108, 108, 111, 10, 65})
		require.NoError(t, err)
		return scores
	}
	require.Equal(t, logprobs("builtin", "tiny"), logprobs("file", path))

	dir := t.TempDir()
	register := func(base string) error {
		b := open(t, dir)
		defer func() { require.NoError(t, b.Close()) }()
		return art.NewModel("run", &art.ModelOptions{Base: base}).Register(t.Context(), b)
	}
	require.NoError(t, register(path))
	moved := filepath.Join(t.TempDir(), "moved.gguf")
	require.NoError(t, os.Rename(path, moved))
	require.NoError(t, register(moved))

	content, err := os.ReadFile(moved)
	require.NoError(t, err)
	content[len(content)-1] ^= 1 // a weight
	require.NoError(t, os.WriteFile(moved, content, 0o600))
	err = register(moved)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, "was made with")
}

// TestRegister_GGUFErrors: a file that cannot be used is named, with what is wrong.
func TestRegister_GGUFErrors(t *testing.T) {
	b := open(t, t.TempDir())
	path := filepath.Join(t.TempDir(), "model.gguf")
	require.NoError(t, os.WriteFile(path, []byte("GGUF"), 0o600))
	err := art.NewModel("run", &art.ModelOptions{Base: path}).Register(t.Context(), b)
	require.ErrorIs(t, err, art.ErrBaseModel)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "truncated")
}

// TestWeights_Stored: sampling from a quantized file as it is stored, and training an adapter on it, have the bits of
// the same with its numbers in float32, and the trainer's logprobs are the sampler's.
func TestWeights_Stored(t *testing.T) {
	path := gguftest.Quantized(t, "../../model/tiny")
	type outcome struct {
		ids      []int32
		loss     float64
		logprobs []float32
	}
	outcomes := map[string]outcome{}
	for _, weights := range []string{"float32", "stored"} {
		opts := &Options{Dir: t.TempDir(), Slots: 8, Context: 256, Weights: weights, Progress: io.Discard}
		b, err := Open(t.Context(), opts)
		require.NoError(t, err)
		m := art.NewModel("run", &art.ModelOptions{Base: path, Seed: 3, Chat: art.ChatOptions{MaxTokens: new(12)}})
		require.NoError(t, m.Register(t.Context(), b))
		var o outcome
		groups, err := art.GatherGroups(t.Context(), []int{1}, func(ctx context.Context, _ int) (*art.Trajectory, error) {
			x := art.NewTrajectory(art.User("Say something."))
			reply, err := m.Chat(ctx, x, nil)
			if err == nil {
				x.Reward = float64(len(reply.Content) % 7)
				o.ids = append(o.ids, reply.Sample.IDs...)
			}
			return x, err
		}, &art.GatherOptions{GroupSize: 8, Concurrency: 1})
		require.NoError(t, err)
		result, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-3})
		require.NoError(t, err)
		require.Zero(t, result.Metrics["train/logprob_gap_max"])
		o.loss = result.Metrics["loss/policy"]
		o.logprobs, _, err = b.Logprobs(t.Context(), m, []int32{72, 101, 108, 108, 111, 10, 65})
		require.NoError(t, err)
		outcomes[weights] = o
		require.NoError(t, b.Close())
	}
	require.Equal(t, outcomes["float32"], outcomes["stored"])
	require.NotZero(t, outcomes["stored"].loss)
}
