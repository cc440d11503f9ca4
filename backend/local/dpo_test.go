package local

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
)

// preferencePairs are pairs that prefer one answer to another.
func preferencePairs(chosen, rejected string) (pairs []art.Preference) {
	for _, prompt := range []string{"7+5=", "What is 31-12?", "1+1="} {
		pairs = append(pairs, art.Preference{
			Chosen:   art.NewTrajectory(art.User(prompt), art.Assistant(chosen)),
			Rejected: art.NewTrajectory(art.User(prompt), art.Assistant(rejected)),
		})
	}
	return pairs
}

// TestTrainDPO_Learns: in a few steps the chosen answers become likelier than the rejected ones, relative to the
// reference, in either direction. The first loss is log 2: the reference is the step itself, bit for bit.
func TestTrainDPO_Learns(t *testing.T) {
	b := open(t, t.TempDir())
	for name, pair := range map[string][2]string{"yes": {"yes", "no"}, "no": {"no", "yes"}} {
		m := art.NewModel(name, nil)
		require.NoError(t, m.Register(t.Context(), b))
		var first art.TrainProgress
		result, err := m.TrainDPO(t.Context(), preferencePairs(pair[0], pair[1]), &art.DPOConfig{
			LearningRate: 1e-3, BatchSize: 2, Epochs: 3, Progress: func(p art.TrainProgress) {
				if p.Done == 1 {
					first = p
				}
			},
		})
		require.NoError(t, err)
		require.Equal(t, 1, result.Step)
		require.Equal(t, 6, first.Total, "two batches of three epochs")
		require.InDelta(t, math.Ln2, first.Metrics["loss/dpo"], 1e-12)
		require.Equal(t, 1.0, result.Metrics["train/reward_accuracy"])
		require.Greater(t, result.Metrics["train/reward_margin"], 0.1)
		require.Less(t, result.Metrics["loss/dpo"], math.Ln2)
		chosen, rejected := result.Metrics["train/chosen_logprob_change"], result.Metrics["train/rejected_logprob_change"]
		require.InDelta(t, 0.1*(chosen-rejected), result.Metrics["train/reward_margin"], 1e-9)
		require.Equal(t, 6.0, result.Metrics["data/updates"])
		require.Equal(t, 3.0, result.Metrics["data/groups_trainable"])
	}
}

// TestTrainDPO_Reference: by default each call begins at no preference; with ReferenceBase the second goes on from what
// the first learned.
func TestTrainDPO_Reference(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	cfg := &art.DPOConfig{LearningRate: 1e-3}
	pairs := preferencePairs("yes", "no")
	first, err := m.TrainDPO(t.Context(), pairs, cfg)
	require.NoError(t, err)
	again, err := m.TrainDPO(t.Context(), pairs, cfg)
	require.NoError(t, err)
	require.InDelta(t, math.Ln2, again.Metrics["loss/dpo"], 1e-12)
	cfg.ReferenceBase = true
	base, err := m.TrainDPO(t.Context(), pairs, cfg)
	require.NoError(t, err)
	require.Less(t, base.Metrics["loss/dpo"], math.Ln2-0.01)
	require.Greater(t, base.Metrics["train/reward_margin"], first.Metrics["train/reward_margin"])
}

// TestTrainDPO_Skips: a pair with an answer that does not fit is left out, whole, and the others are trained on; when
// none is left there is no step.
func TestTrainDPO_Skips(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	pairs := preferencePairs("yes", "no")
	long := pairs[1].Rejected
	for len(long.Messages[1].Content) < 1<<17 {
		long.Messages[1].Content += "no no no no no no no no no no no no no no no no no no no no no no no no no no no no "
	}
	result, err := m.TrainDPO(t.Context(), pairs, nil)
	require.NoError(t, err)
	require.Len(t, result.Skipped, 1)
	skip := result.Skipped[0]
	require.Equal(t, []any{1, 1, credit.ReasonTooLong}, []any{skip.Group, skip.Trajectory, skip.Reason})
	require.Equal(t, 4.0, result.Metrics["data/trajectories_trained"])
	require.Equal(t, 1.0, result.Metrics["data/skipped_too_long"])
	_, err = m.TrainDPO(t.Context(), pairs[1:2], nil)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, "nothing to train on in 1 pair")
	require.Equal(t, 1, m.Step())
}

// TestTrainDPO_PromptIsNotTrained: only what follows the common prompt is in the loss, earlier answers are not.
func TestTrainDPO_PromptIsNotTrained(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	short, err := m.TrainDPO(t.Context(), preferencePairs("yes", "no")[:1], nil)
	require.NoError(t, err)
	before := []art.Message{art.User("Hello"), art.Assistant("Hello, how are you?"), art.User("7+5=")}
	long, err := m.TrainDPO(t.Context(), []art.Preference{{
		Chosen:   art.NewTrajectory(append(before[:3:3], art.Assistant("yes"))...),
		Rejected: art.NewTrajectory(append(before[:3:3], art.Assistant("no"))...),
	}}, nil)
	require.NoError(t, err)
	require.Positive(t, short.Metrics["data/tokens_trained"])
	require.Equal(t, short.Metrics["data/tokens_trained"], long.Metrics["data/tokens_trained"])
}
