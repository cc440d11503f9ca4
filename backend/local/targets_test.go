package local

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// TestRegister_Targets: adapters of the embedding, the head and the layers of a pattern are trained, with the sampler's
// logprobs, and continue after a restart; a pattern that matches nothing is an error.
func TestRegister_Targets(t *testing.T) {
	for name, l := range map[string]art.LoRA{
		"ends":    {Rank: 4, Targets: []string{"embed_tokens", "lm_head", "q_proj"}},
		"pattern": {Rank: 4, TargetPattern: `.*layers\.1\..*_proj|lm_head`},
	} {
		dir := t.TempDir()
		opts := &art.ModelOptions{LoRA: l}
		b := open(t, dir)
		m := art.NewModel("m", opts)
		require.NoError(t, m.Register(t.Context(), b), name)
		result, err := m.Train(t.Context(), play(t, m), &art.TrainConfig{LearningRate: 1e-2})
		require.NoError(t, err, name)
		require.Zero(t, result.Metrics["train/logprob_gap_max"], name)
		require.Positive(t, result.Metrics["train/logprob_change_max"], name)
		state := b.models[m].state
		require.NoError(t, b.Close())

		again := open(t, dir)
		m = art.NewModel("m", opts)
		require.NoError(t, m.Register(t.Context(), again), name)
		equal, _ := compareStates(state, again.models[m].state)
		require.True(t, equal, name)
		result, err = m.Train(t.Context(), play(t, m), nil)
		require.NoError(t, err, name)
		require.Zero(t, result.Metrics["train/logprob_gap_max"], name)
	}
	b := open(t, t.TempDir())
	err := art.NewModel("m", &art.ModelOptions{LoRA: art.LoRA{TargetPattern: "nothing"}}).Register(t.Context(), b)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, "matches no layer")
}
