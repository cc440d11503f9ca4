package local

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// TestTrain_Diverged: a step that moved the adapter so far that the model computes no numbers was committed, and every
// later chat failed, also after the run was opened again. It is an error now, and as if it had never been tried.
func TestTrain_Diverged(t *testing.T) {
	type trained struct {
		adapter, reply string
		checkpoints    []int
	}
	run := func(try func(m *art.Model, groups []*art.TrajectoryGroup)) (after trained) {
		dir := t.TempDir()
		b := open(t, dir)
		m := art.NewModel("m", nil)
		require.NoError(t, m.Register(t.Context(), b))
		groups, err := art.GatherGroups(t.Context(), []string{"7+5=", "What is 31-12?"}, twoTurns(m),
			&art.GatherOptions{GroupSize: 5})
		require.NoError(t, err)
		sane := &art.TrainConfig{LearningRate: 1e-3}
		_, err = m.Train(t.Context(), groups, sane)
		require.NoError(t, err)
		ask := func() string {
			reply, err := m.Chat(t.Context(), art.NewTrajectory(art.User("7+5=")),
				&art.ChatOptions{Seed: new(uint64(5)), MaxTokens: new(8)})
			require.NoError(t, err)
			require.Equal(t, 1, reply.Sample.Step)
			return reply.Content
		}
		after.reply = ask()
		try(m, groups)
		require.Equal(t, 1, m.Step())
		require.Equal(t, after.reply, ask())
		require.NoError(t, b.Close())

		b = open(t, dir)
		m = art.NewModel("m", nil)
		require.NoError(t, m.Register(t.Context(), b))
		require.Equal(t, after.reply, ask(), "after it was opened again")
		try(m, groups)
		_, err = m.Train(t.Context(), groups, sane)
		require.NoError(t, err)
		after.adapter = adapterBytes(t, b, m, 2)
		after.checkpoints, err = b.Checkpoints(t.Context(), m)
		require.NoError(t, err)
		return after
	}
	want := run(func(*art.Model, []*art.TrajectoryGroup) {})
	diverged := func(err error, hint string) {
		var e *art.Error
		require.ErrorAs(t, err, &e)
		require.Contains(t, e.Hint, hint)
		require.Contains(t, e.Hint, "the model stays at the previous step")
	}
	require.Equal(t, want, run(func(m *art.Model, groups []*art.TrajectoryGroup) {
		for _, epochs := range []int{1, 3} {
			_, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e4, Epochs: epochs})
			diverged(err, "lower LearningRate, which is 10000;")
		}
		_, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e30, MaxGradNorm: -1})
		diverged(err, "lower LearningRate, which is 1e+30, or bound the gradient by MaxGradNorm, which is off")
		_, err = m.TrainSFT(t.Context(), groups[0].Trajectories, &art.SFTConfig{LearningRate: 1e6})
		diverged(err, "lower LearningRate, which is 1e+06;")
	}))
}

// TestTrain_Unmoved: a step that moved nothing is a warning, once; one that moved something is none.
func TestTrain_Unmoved(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b, err := Open(context.Background(),
		&Options{Dir: t.TempDir(), Slots: 8, Context: 128, Progress: io.Discard, Logger: logger})
	require.NoError(t, err)
	defer b.Close()
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 5})
	require.NoError(t, err)
	check := func(result *art.TrainResult, err error, warned bool) {
		require.NoError(t, err)
		change := result.Metrics["train/logprob_change_max"]
		require.Equal(t, warned, change <= 4e-3, "%v", change)
		require.LessOrEqual(t, result.Metrics["train/logprob_change_mean"], change)
		if !warned {
			require.Empty(t, log.String())
			return
		}
		var record struct {
			Msg          string  `json:"msg"`
			Step         int     `json:"step"`
			LearningRate float64 `json:"LearningRate"`
			Change       float64 `json:"train/logprob_change_max"`
		}
		require.NoError(t, json.Unmarshal(log.Bytes(), &record), "one line: %s", log.String())
		require.Contains(t, record.Msg, "raise LearningRate")
		require.Equal(t, []any{result.Step, change}, []any{record.Step, record.Change})
		require.Positive(t, record.LearningRate)
		log.Reset()
	}
	result, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 5e-6}) // ART's default
	check(result, err, true)
	result, err = m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-3})
	check(result, err, false)
	result, err = m.TrainSFT(t.Context(), groups[0].Trajectories, &art.SFTConfig{LearningRate: 1e-8})
	check(result, err, true)
	result, err = m.TrainSFT(t.Context(), groups[0].Trajectories, &art.SFTConfig{LearningRate: 1e-2})
	check(result, err, false)
	for i := range groups[0].Trajectories {
		groups[0].Trajectories[i].Reward = 1
	}
	_, err = m.Train(t.Context(), groups, nil)
	require.NoError(t, err)
	require.Empty(t, log.String(), "nothing to train on: Skipped says so")
}

// TestTrain_Staleness: the gap of sampler and trainer does not rise with the age of samples, which has metrics of its
// own. train/logprob_gap_max was 0 on policy and above 1 off policy.
func TestTrain_Staleness(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	gather := func() []*art.TrajectoryGroup {
		groups, err := art.GatherGroups(t.Context(), []string{"7+5=", "What is 31-12?"}, twoTurns(m),
			&art.GatherOptions{GroupSize: 5})
		require.NoError(t, err)
		return groups
	}
	train := func(groups []*art.TrajectoryGroup) map[string]float64 {
		result, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 3e-3, MiniBatches: 3, Epochs: 2})
		require.NoError(t, err)
		return result.Metrics
	}
	const age, oldest = "offpolicy/token_weighted_policy_age_steps", "offpolicy/policy_age_max_steps"
	first := gather()
	metrics := train(first)
	require.Equal(t, []float64{0, 0}, []float64{metrics[age], metrics[oldest]})
	require.Contains(t, metrics, "train/logprob_gap_max")
	require.Zero(t, metrics["train/logprob_gap_max"], "later mini-batches too")
	require.NotContains(t, metrics, "offpolicy/logprob_diff_max")
	require.Positive(t, metrics["loss/log_ratio_max"], "updates move the policy")

	metrics = train(append(gather(), first...))
	require.Zero(t, metrics["train/logprob_gap_max"])
	require.Greater(t, metrics["offpolicy/logprob_diff_max"], metrics["offpolicy/logprob_diff_mean"])
	require.Positive(t, metrics["offpolicy/logprob_diff_mean"])
	require.Equal(t, 1.0, metrics[oldest])
	require.Greater(t, metrics[age], 0.0)
	require.Less(t, metrics[age], 1.0)

	metrics = train(first)
	require.NotContains(t, metrics, "train/logprob_gap_max", "there is no token to measure it by")
	require.Equal(t, []float64{2, 2}, []float64{metrics[age], metrics[oldest]})
}
