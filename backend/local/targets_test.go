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
}

// TestRegister_TargetsRefused: a pattern that has no effect is an error, and a run goes on with the pattern that it
// began with.
func TestRegister_TargetsRefused(t *testing.T) {
	b := open(t, t.TempDir())
	for want, l := range map[string]art.LoRA{
		`pattern "nothing" matches no layer`:            {TargetPattern: "nothing"},
		`pattern "z_proj" of ranks matches no layer`:    {Ranks: map[string]int{"z_proj": 2}},
		`pattern "lm_head" of alphas matches no layer`:  {Alphas: map[string]float64{"lm_head": 2}},
		`rank of "q_proj" is 0`:                         {Ranks: map[string]int{"q_proj": 0}},
		"LoRA has both Targets and a TargetPattern":     {Targets: []string{"q_proj"}, TargetPattern: ".*"},
		`no layer is called "wq"`:                       {Targets: []string{"wq"}},
		`pattern "("`:                                   {Ranks: map[string]int{"(": 2}},
		`pattern "all-linear" is no regular expression`: {TargetPattern: "all-linear"},
		"LoRA rank is -1, want > 0":                     {Rank: -1},
		"rank is 200, and no layer has more than":       {Rank: 200, Targets: []string{"k_proj"}},
	} {
		err := art.NewModel("m", &art.ModelOptions{LoRA: l}).Register(t.Context(), b)
		require.ErrorIs(t, err, art.ErrInvalid, want)
		require.ErrorContains(t, err, want)
	}
	first := art.NewModel("m", &art.ModelOptions{LoRA: art.LoRA{TargetPattern: ".*q_proj"}})
	require.NoError(t, first.Register(t.Context(), b))
	require.NoError(t, b.Release(t.Context(), first))
	err := art.NewModel("m", &art.ModelOptions{LoRA: art.LoRA{TargetPattern: ".*k_proj"}}).Register(t.Context(), b)
	require.ErrorContains(t, err, `LoRA.TargetPattern was ".*q_proj" and is now ".*k_proj"`)
}
