package local

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/runs"
)

// openLogged opens a backend, and returns what it warns of.
func openLogged(t *testing.T) (*Backend, *bytes.Buffer) {
	log := &bytes.Buffer{}
	b, err := Open(t.Context(), &Options{
		Dir: t.TempDir(), Slots: 8, Context: 256, Progress: io.Discard,
		Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b, log
}

// named lists what was skipped because it is not finite: pairs of group and trajectory.
func named(skips []art.Skip) (list [][2]int) {
	for _, s := range skips {
		if s.Reason == credit.ReasonNotFinite {
			list = append(list, [2]int{s.Group, s.Trajectory})
		}
	}
	return list
}

// requireSkipped: a training all of whose updates were skipped made a step with the same adapter and optimizer, says
// what it skipped, and replays.
func requireSkipped(t *testing.T, b *Backend, m *art.Model, log *bytes.Buffer, result *art.TrainResult) {
	t.Helper()
	require.Equal(t, 0.0, result.Metrics["data/updates"])
	require.Positive(t, result.Metrics["data/updates_skipped"])
	require.InDelta(t, len(named(result.Skipped)), result.Metrics["data/skipped_not_finite"], 0)
	require.NotContains(t, result.Metrics, "loss/grad_norm")
	require.NotContains(t, result.Metrics, "train/logprob_change_max")
	for _, name := range []string{"adapter_model.safetensors", "optimizer.safetensors"} {
		require.Equal(t, file(t, b, m, result.Step-1, name), file(t, b, m, result.Step, name), name)
	}
	require.Contains(t, log.String(), "the step changed nothing: all of its updates were skipped")
	require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	log.Reset()
	run, err := b.Dir(m)
	require.NoError(t, err)
	replayed, err := b.Replay(t.Context(), run, result.Step-1)
	require.NoError(t, err)
	require.True(t, replayed.Equal)
}

// overflowing trains on rewards as they are, so that large ones overflow.
func overflowing() *art.TrainConfig {
	return &art.TrainConfig{LearningRate: 1e-3, Scale: credit.ScaleNone, NormalizeAdvantages: new(false)}
}

// TestTrain_NotFinite: the one update of a step is skipped when the gradients of a group overflow. Its trajectories are
// named as they were given, beside others that are not trained on. The next step is as if this one had not been.
func TestTrain_NotFinite(t *testing.T) {
	b, log := openLogged(t)
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	groups, err := art.GatherGroups(t.Context(), []string{"7+5=", "1+1=", "2+2="}, twoTurns(m),
		&art.GatherOptions{GroupSize: 4})
	require.NoError(t, err)
	for g, group := range groups {
		for i, trajectory := range group.Trajectories {
			trajectory.Reward = []float64{1, 1e35, 1}[g] * float64(i%2)
		}
	}
	for _, trajectory := range groups[0].Trajectories {
		trajectory.Reward = 1 // nothing to compare
	}
	groups[1].Trajectories[1] = nil
	result, err := m.Train(t.Context(), groups, overflowing())
	require.NoError(t, err)
	require.Equal(t, 1, result.Step)
	require.Equal(t, 1, m.Step())
	require.Equal(t, [][2]int{{1, 0}, {1, 2}, {1, 3}}, named(result.Skipped))
	require.Contains(t, log.String(), "3 of group 1: its loss or gradient is NaN or infinite")
	requireSkipped(t, b, m, log, result)

	result, err = m.Train(t.Context(), groups[2:], overflowing())
	require.NoError(t, err)
	require.Equal(t, []float64{1, 0, 1}, []float64{
		result.Metrics["data/updates"], result.Metrics["data/updates_skipped"], result.Metrics["data/cum/updates_skipped"],
	})
	require.NotEqual(t, adapterBytes(t, b, m, 1), adapterBytes(t, b, m, 2))
	require.Empty(t, log.String())
}

// TestTrain_LogprobsNotFinite: conversations of which the model computes no finite loss are named by their index, and
// so are pairs. The adapter is finite, but its products are not.
func TestTrain_LogprobsNotFinite(t *testing.T) {
	b, log := openLogged(t)
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	e := b.models[m]
	large := *e.state
	large.Params = nil
	for _, p := range e.state.Params {
		large.Params = append(large.Params, slices.Repeat([]float32{1e30}, len(p)))
	}
	require.NoError(t, b.publish(m, e, &large, runs.Update{}, nil))

	list := []*art.Trajectory{nil, art.NewTrajectory(art.User("no reply")), conversationOf("7+5=", "12", "and", "13")[0]}
	result, err := m.TrainSFT(t.Context(), list, &art.SFTConfig{LearningRate: 1e-3})
	require.NoError(t, err)
	require.Equal(t, [][2]int{{0, 2}}, named(result.Skipped))
	require.NotContains(t, result.Metrics, "loss/sft")
	requireSkipped(t, b, m, log, result)

	pairs := preferencePairs("yes", "no")
	for len(pairs[0].Chosen.Messages[1].Content) < 1<<17 {
		pairs[0].Chosen.Messages[1].Content += strings.Repeat("no ", 1000)
	}
	preferred, err := m.TrainDPO(t.Context(), pairs, &art.DPOConfig{LearningRate: 1e-3})
	require.NoError(t, err)
	require.Equal(t, [][2]int{{1, 0}, {1, 1}, {2, 0}, {2, 1}}, named(preferred.Skipped))
	requireSkipped(t, b, m, log, preferred)
}

// TestTrainDPO_NotFinite: an update of pairs whose gradients overflow is skipped, and the pairs are named.
func TestTrainDPO_NotFinite(t *testing.T) {
	b, log := openLogged(t)
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	result, err := m.TrainDPO(t.Context(), preferencePairs("yes", "no"), &art.DPOConfig{LearningRate: 1e-3, Beta: 1e35})
	require.NoError(t, err)
	require.Len(t, named(result.Skipped), 6)
	require.NotContains(t, result.Metrics, "loss/dpo")
	require.Contains(t, result.Metrics, "train/reward_margin", "they are measured all the same")
	requireSkipped(t, b, m, log, result)
}

// TestTrain_ReferenceNotFinite: a trajectory whose logprobs under the reference of KL are not finite is named,
// whichever way KL is used; with advantages, the others are shaped as if it had not been.
func TestTrain_ReferenceNotFinite(t *testing.T) {
	b, log := openLogged(t)
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	groups := play(t, m)
	e := b.models[m]
	sane, large := *e.state, *e.state
	large.Params = nil
	for _, p := range e.state.Params {
		large.Params = append(large.Params, slices.Repeat([]float32{1e30}, len(p)))
	}
	require.NoError(t, b.publish(m, e, &large, runs.Update{}, nil))
	require.NoError(t, b.publish(m, e, &sane, runs.Update{}, nil))
	for _, advantage := range []bool{false, true} {
		result, err := m.Train(t.Context(), groups, &art.TrainConfig{
			LearningRate: 1e-3, KL: credit.KL{Coef: 0.1, Step: new(1), Advantage: advantage},
		})
		require.NoError(t, err)
		require.Len(t, named(result.Skipped), int(result.Metrics["data/trajectories_trained"]))
		requireSkipped(t, b, m, log, result)
	}
	sequence := func(reference float32) grpo.Sequence {
		return grpo.Sequence{
			IDs: []int32{1, 2}, Trained: []bool{false, true}, Logprobs: []float32{0, -1}, Reference: []float32{0, reference},
			Weight: 1,
		}
	}
	kl := credit.KL{Coef: 0.1, Estimator: credit.K1}
	with := []grpo.Sequence{sequence(-2), sequence(float32(math.NaN())), sequence(-3)}
	without := []grpo.Sequence{sequence(-2), sequence(-3)}
	mean, err := shapeByKL(with, kl)
	require.NoError(t, err)
	want, err := shapeByKL(without, kl)
	require.NoError(t, err)
	require.Equal(t, want, mean)
	require.Equal(t, without, []grpo.Sequence{with[0], with[2]})
	require.NotNil(t, with[0].Shaping)
	require.Nil(t, with[1].Shaping)
}

// TestPipeline_NotFinite: a pipeline goes on after a step whose update was skipped, and tells of it.
func TestPipeline_NotFinite(t *testing.T) {
	b, log := openLogged(t)
	var events []art.Skip
	m := art.NewModel("m", &art.ModelOptions{Events: &art.Events{Skip: func(e art.SkipEvent) {
		if e.Reason == credit.ReasonNotFinite {
			events = append(events, e.Skip)
		}
	}}})
	require.NoError(t, m.Register(t.Context(), b))
	rollout := func(ctx context.Context, question string) (*art.Trajectory, error) {
		trajectory, err := oneToken(m)(ctx, question)
		if err == nil && m.Step() == 1 {
			trajectory.Reward *= 1e35
		}
		return trajectory, err
	}
	questions := []string{"yes or no", "2+2=", "hello", "no or yes", "1+1=", "3+3="}
	result, err := art.Pipeline(t.Context(), m, questions, rollout, &art.PipelineOptions{
		Steps: 3, Groups: 2, MaxStaleness: new(0), Train: overflowing(), Gather: &art.GatherOptions{GroupSize: 8},
	})
	require.NoError(t, err)
	require.Equal(t, 3, result.Step)
	rows, err := b.History(t.Context(), m)
	require.NoError(t, err)
	for step, want := range []float64{0, 1, 0} {
		got, ok := art.Logged(rows, "data/updates_skipped", step)
		require.True(t, ok)
		require.Equal(t, want, got, "step %d", step)
	}
	require.NotEmpty(t, events)
	require.Contains(t, log.String(), "all of its updates were skipped")
	require.NotEqual(t, adapterBytes(t, b, m, 0), adapterBytes(t, b, m, 1))
	require.Equal(t, adapterBytes(t, b, m, 1), adapterBytes(t, b, m, 2))
	require.NotEqual(t, adapterBytes(t, b, m, 2), adapterBytes(t, b, m, 3))
}
