package local

import (
	"io"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
)

// TestTrain_Reference: the divergence from the base model is 0 while the model is the base, and grows with training;
// that from a step is 0 at the step, and a lag of one step is the step before.
func TestTrain_Reference(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	kl := func(cfg credit.KL) float64 {
		groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 6})
		require.NoError(t, err)
		cfg.Coef = 0.1
		result, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 3e-3, MaxGradNorm: 1, KL: cfg})
		require.NoError(t, err)
		return result.Metrics["loss/kl_ref"]
	}
	step := func(k int) *int { return &k }
	require.InDelta(t, 0, kl(credit.KL{}), 1e-9, "step 0 is the base model")
	require.Greater(t, kl(credit.KL{Advantage: true, Estimator: credit.K2}), 1e-6, "step 1 is not")
	require.InDelta(t, 0, kl(credit.KL{Step: step(2)}), 1e-9, "step 2 is step 2")
	require.Greater(t, kl(credit.KL{Lag: 1}), 1e-6, "step 2 is not step 3")
	require.Equal(t, 4, m.Step())

	groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 4})
	require.NoError(t, err)
	_, err = m.Train(t.Context(), groups, &art.TrainConfig{KL: credit.KL{Coef: 1, Step: step(9)}})
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, "step 9, which has no checkpoint")
	require.Equal(t, 4, m.Step(), "a refused training makes no step")
}

// compared is REINFORCE that measures how far the policy is from a reference.
type compared struct{}

func (compared) Validate() error { return nil }

func (compared) Spec() grpo.LossSpec {
	return grpo.LossSpec{Key: "compared", Sampled: true, Reference: true, Metrics: []grpo.Metric{
		{Name: "loss/policy", Reduction: grpo.MeanOverUpdates}, {Name: "loss/gap"},
	}}
}

func (compared) Build(in grpo.LossInputs) (loss *graph.Node, metrics map[string]*graph.Node) {
	loss = in.Mean(graph.Neg(graph.Mul(in.Advantage, in.New)))
	gap := graph.Mul(graph.Abs(graph.Sub(in.New, in.Reference)), in.Mask)
	return loss, map[string]*graph.Node{"loss/policy": loss, "loss/gap": graph.ReduceAllSum(gap)}
}

// TestTrain_ReferenceOfLoss: a loss of one's own that asks for a reference has one without a penalty: the base model,
// or what KL says. Where nothing uses it, saying so is an error.
func TestTrain_ReferenceOfLoss(t *testing.T) {
	losses := []grpo.Loss{compared{}, keyed{key: "plain"}}
	b, err := Open(t.Context(), &Options{Dir: t.TempDir(), Slots: 8, Context: 256, Progress: io.Discard, Losses: losses})
	require.NoError(t, err)
	defer b.Close()
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 6})
	require.NoError(t, err)
	train := func(loss credit.Loss, kl credit.KL) (map[string]float64, error) {
		result, err := m.Train(t.Context(), groups, &art.TrainConfig{Loss: loss, LearningRate: 3e-3, MaxGradNorm: 1, KL: kl})
		if err != nil {
			return nil, err
		}
		return result.Metrics, nil
	}
	gap := func(kl credit.KL) float64 {
		metrics, err := train("compared", kl)
		require.NoError(t, err)
		require.Contains(t, metrics, "loss/gap")
		require.NotContains(t, metrics, "loss/kl_ref", "there is no penalty")
		return metrics["loss/gap"]
	}
	require.InDelta(t, 0, gap(credit.KL{}), 1e-5, "step 0 is the base model")
	require.Greater(t, gap(credit.KL{}), 1e-4, "step 1 is not")
	require.InDelta(t, 0, gap(credit.KL{Step: new(2)}), 1e-5, "step 2 is step 2")
	require.Greater(t, gap(credit.KL{Lag: 1}), 1e-4, "step 3 is not step 2")
	metrics, err := train("compared", credit.KL{Coef: 0.1})
	require.NoError(t, err)
	require.Greater(t, metrics["loss/kl_ref"], 0.0, "a penalty beside it")

	_, err = train("plain", credit.KL{Lag: 1})
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, `loss "plain" uses no reference`)
	require.Equal(t, 5, m.Step(), "a refused training makes no step")
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
	cfg.Correction = credit.Correction{Method: credit.CorrectMask, Low: 0.999, High: 1.001} // has them precalculated
	fresh, err := m.Train(t.Context(), groups, cfg)
	require.NoError(t, err)
	require.InDelta(t, 0, fresh.Metrics["loss/log_ratio_max"], 1e-5)
	require.Greater(t, fresh.Metrics["loss/corrected_fraction"], 0.1)
	require.Greater(t, fresh.Metrics["offpolicy/logprob_diff_max"], 1e-3, "measured against the sampler all the same")
}
