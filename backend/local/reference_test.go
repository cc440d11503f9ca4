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

// TestCollect_Truncated: a reply that was cut is context for what follows, and counts in the baseline; one after it
// is trained on.
func TestCollect_Truncated(t *testing.T) {
	cut := func() art.Message {
		m := sampled([]int32{1, 2}, []int32{3, 4})
		m.Sample.Finish = art.FinishLength
		return m
	}
	cfg := (&art.TrainConfig{MaskTruncated: true}).WithDefaults()
	b := collect(group(
		rewarded(1, cut(), art.User("u"), sampled([]int32{1, 2, 3, 4, 5}, []int32{6})),
		rewarded(0, cut()), rewarded(2, cut()),
		rewarded(3, sampled([]int32{1, 2}, []int32{7})),
	), cfg, 0, 20, 100)
	require.Len(t, b.sequences, 2)
	require.Equal(t, []int32{1, 2, 3, 4, 5, 6}, b.sequences[0].IDs)
	require.Equal(t, []bool{false, false, false, false, false, true}, b.sequences[0].Trained)
	require.InDelta(t, -b.sequences[1].Advantage/3, b.sequences[0].Advantage, 1e-9, "the mean is 1.5")
	metrics := b.metrics(nil)
	require.Equal(t, 2.0, metrics["data/skipped_truncated"])
	require.Equal(t, 6.0, metrics["data/tokens_truncated"])
}

// TestCollect_Overlong: 4 sampled tokens of at most 5, with a buffer of 2, cost half of the penalty.
func TestCollect_Overlong(t *testing.T) {
	overlong := art.Overlong{Longest: 5, Buffer: 2, Penalty: 3}
	cfg := (&art.TrainConfig{Scale: art.ScaleNone, Overlong: overlong}).WithDefaults()
	b := collect(group(
		rewarded(1, sampled([]int32{1}, []int32{2, 3, 4, 5})), rewarded(1, sampled([]int32{1}, []int32{2})),
	), cfg, 0, 20, 100)
	require.Len(t, b.sequences, 2, "rewards differ by the penalty alone")
	require.InDelta(t, -0.75, b.sequences[0].Advantage, 1e-12)
	require.InDelta(t, 0.75, b.sequences[1].Advantage, 1e-12)
	require.InDelta(t, -0.75, b.metrics(group(rewarded(1), rewarded(1)))["data/overlong_penalty_mean"], 1e-12)
}

// TestCollect_Behavior: with Correction.Behavior the logprobs of the distribution that was sampled from are kept.
func TestCollect_Behavior(t *testing.T) {
	hot := sampled([]int32{1}, []int32{2, 3})
	hot.Sample.Sampled = []float32{-0.5, -0.25}
	groups := group(rewarded(1, hot), rewarded(0, sampled([]int32{1}, []int32{4})))
	require.Nil(t, collectAll(groups).sequences[0].Behavior)
	cfg := &art.TrainConfig{Correction: art.Correction{Method: art.CorrectTruncate, Behavior: true}}
	b := collect(groups, cfg.WithDefaults(), 0, 20, 100)
	require.Equal(t, []float32{0, -0.5, -0.25}, b.sequences[0].Behavior)
	require.Equal(t, []float32{0, -4}, b.sequences[1].Behavior, "as the policy's where none were recorded")
	hot.Sample.Sampled = []float32{-1}
	b = collect(groups, cfg.WithDefaults(), 0, 20, 100)
	require.Equal(t, 1.0, b.metrics(nil)["data/skipped_bad_sample"])
}
