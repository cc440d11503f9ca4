package local

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// TestTrain_Reference: the divergence from the base model is 0 while the model is the base, and grows with training;
// that from a step is 0 at the step, and a lag of one step is the step before.
func TestTrain_Reference(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	kl := func(cfg art.KL) float64 {
		groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 6})
		require.NoError(t, err)
		cfg.Coef = 0.1
		result, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 3e-3, MaxGradNorm: 1, KL: cfg})
		require.NoError(t, err)
		return result.Metrics["loss/kl_ref"]
	}
	step := func(k int) *int { return &k }
	require.InDelta(t, 0, kl(art.KL{}), 1e-9, "step 0 is the base model")
	require.Greater(t, kl(art.KL{Advantage: true, Estimator: art.KLK2}), 1e-6, "step 1 is not")
	require.InDelta(t, 0, kl(art.KL{Step: step(2)}), 1e-9, "step 2 is step 2")
	require.Greater(t, kl(art.KL{Lag: 1}), 1e-6, "step 2 is not step 3")
	require.Equal(t, 4, m.Step())

	groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 4})
	require.NoError(t, err)
	_, err = m.Train(t.Context(), groups, &art.TrainConfig{KL: art.KL{Coef: 1, Step: step(9)}})
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, "step 9, which has no checkpoint")
	require.Equal(t, 4, m.Step(), "a refused training makes no step")
}

// TestTrain_PrecalculatedLogprobs: ratios are 1 before the first update even of samples of an old step, and the
// correction has what they have lost.
func TestTrain_PrecalculatedLogprobs(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 6})
	require.NoError(t, err)
	cfg := &art.TrainConfig{LearningRate: 3e-3, MaxGradNorm: 1}
	_, err = m.Train(t.Context(), groups, cfg)
	require.NoError(t, err)
	stale, err := m.Train(t.Context(), groups, cfg)
	require.NoError(t, err)
	require.Greater(t, stale.Metrics["loss/log_ratio_max"], 1e-3)
	cfg.PrecalculateLogprobs, cfg.Correction = true, art.Correction{Method: art.CorrectMask, Low: 0.999, High: 1.001}
	fresh, err := m.Train(t.Context(), groups, cfg)
	require.NoError(t, err)
	require.InDelta(t, 0, fresh.Metrics["loss/log_ratio_max"], 1e-5)
	require.Greater(t, fresh.Metrics["loss/corrected_fraction"], 0.1)
	require.Greater(t, fresh.Metrics["offpolicy/logprob_diff_max"], 1e-3, "measured against the sampler all the same")
}
