package local

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// trainSteps makes n steps of a registered model, with a val row of the given reward at each.
func trainSteps(t *testing.T, m *art.Model, rewards ...float64) {
	t.Helper()
	for _, reward := range rewards {
		groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m),
			&art.GatherOptions{GroupSize: 4, Seed: uint64(m.Step())})
		require.NoError(t, err)
		_, err = m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 3e-3})
		require.NoError(t, err)
		require.NoError(t, m.Log(t.Context(), "val", nil, map[string]float64{"reward": reward}))
	}
}

// file reads a file of a checkpoint.
func file(t *testing.T, b *Backend, m *art.Model, step int, name string) []byte {
	t.Helper()
	dir, err := b.Dir(m)
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(dir, "checkpoints", fmt.Sprintf("%04d", step), name))
	require.NoError(t, err)
	return content
}

// checkpointFiles are what a step consists of.
var checkpointFiles = []string{"adapter_model.safetensors", "optimizer.safetensors", "trainer.json"}

// TestFork_IsACopy: a run that is forked from a step begins with its weights and its optimizer.
func TestFork_IsACopy(t *testing.T) {
	b := open(t, t.TempDir())
	first := art.NewModel("first", nil)
	require.NoError(t, first.Register(t.Context(), b))
	trainSteps(t, first, 3, 1)
	fork := art.NewModel("fork", &art.ModelOptions{Fork: "first@1"})
	require.NoError(t, fork.Register(t.Context(), b))
	require.Zero(t, fork.Step())
	for _, name := range checkpointFiles {
		require.True(t, bytes.Equal(file(t, b, first, 1, name), file(t, b, fork, 0, name)), name)
	}
	trainSteps(t, fork, 1)
	best := art.NewModel("best", &art.ModelOptions{Fork: "default/first@best"})
	require.NoError(t, best.Register(t.Context(), b))
	for _, name := range checkpointFiles {
		require.True(t, bytes.Equal(file(t, b, first, 1, name), file(t, b, best, 0, name)), name)
	}
}

// TestFork_Reopens: a fork is continued with the same options when the run that it came from is gone, and not with
// others.
func TestFork_Reopens(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	first := art.NewModel("first", nil)
	require.NoError(t, first.Register(t.Context(), b))
	fork := art.NewModel("fork", &art.ModelOptions{Fork: "first"})
	require.NoError(t, fork.Register(t.Context(), b))
	trainSteps(t, fork, 1)
	gone, err := b.Dir(first)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.NoError(t, os.RemoveAll(gone))

	b = open(t, dir)
	again := art.NewModel("fork", &art.ModelOptions{Fork: "first"})
	require.NoError(t, again.Register(t.Context(), b))
	require.Equal(t, 1, again.Step())
	require.NoError(t, b.Close())
	b = open(t, dir)
	require.ErrorIs(t, art.NewModel("fork", nil).Register(t.Context(), b), art.ErrInvalid)
}

// TestFork_Invalid: what cannot be forked is an error before anything is made.
func TestFork_Invalid(t *testing.T) {
	b := open(t, t.TempDir())
	first := art.NewModel("first", nil)
	require.NoError(t, first.Register(t.Context(), b))
	for i, c := range []struct{ fork, want string }{
		{"none", "no such file or directory"}, {"first@7", "no checkpoint of step 7 (it has 0)"},
		{"first@best", `no stored step has the metric "val/reward"`}, {"first@-1", "neither a number nor"}, {"a/b/c", "'/'"},
	} {
		m := art.NewModel(fmt.Sprint("fork", i), &art.ModelOptions{Fork: c.fork})
		require.ErrorContains(t, m.Register(t.Context(), b), c.want, c.fork)
	}
	both := &art.ModelOptions{Fork: "first", Adapter: "folder"}
	require.ErrorContains(t, art.NewModel("both", both).Register(t.Context(), b), "Adapter and Fork are both set")
}

// TestRestore_GoesBack: the step that Restore makes is the one that it names, weights and optimizer.
func TestRestore_GoesBack(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	trainSteps(t, m, 5, 1)
	best, err := m.BestStep(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, 1, best)
	next, err := m.Restore(t.Context(), best)
	require.NoError(t, err)
	require.Equal(t, 3, next)
	require.Equal(t, 3, m.Step())
	for _, name := range checkpointFiles {
		require.True(t, bytes.Equal(file(t, b, m, 1, name), file(t, b, m, 3, name)), name)
	}
	groups, err := b.Trajectories(t.Context(), m, "train", 1)
	require.NoError(t, err)
	result, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 3e-3})
	require.NoError(t, err)
	require.Contains(t, result.Metrics, "offpolicy/logprob_diff_max")
	require.Zero(t, result.Metrics["offpolicy/logprob_diff_max"], "what step 1 sampled is what step 3 computes")
	_, err = m.Restore(t.Context(), 9)
	require.ErrorIs(t, err, art.ErrInvalid)
}

// TestRetention_AtEachStep: whenever a step is committed, what the retention does not name is deleted.
func TestRetention_AtEachStep(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", &art.ModelOptions{Retention: &art.Retention{Newest: 2, Best: "val/reward", Every: 4}})
	require.NoError(t, m.Register(t.Context(), b))
	trainSteps(t, m, 1, 9, 2, 3, 4, 5)
	steps, err := b.Checkpoints(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, []int{0, 2, 4, 5, 6}, steps)
}

// TestTrain_UnchangedTakesNoRoom: a step that learned nothing shares its files with the one before.
func TestTrain_UnchangedTakesNoRoom(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	_, err := m.Train(t.Context(), []*art.TrajectoryGroup{{}}, nil)
	require.NoError(t, err)
	dir, err := b.Dir(m)
	require.NoError(t, err)
	for _, name := range []string{"adapter_model.safetensors", "optimizer.safetensors"} {
		before, err := os.Stat(filepath.Join(dir, "checkpoints", "0000", name))
		require.NoError(t, err)
		after, err := os.Stat(filepath.Join(dir, "checkpoints", "0001", name))
		require.NoError(t, err)
		require.True(t, os.SameFile(before, after), name)
	}
}

// TestForce_IsWhatSamplingGives: an answer that the model sampled, given to it again, has the same ids and logprobs.
func TestForce_IsWhatSamplingGives(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	trainSteps(t, m, 1)
	sampled := art.NewTrajectory(art.System("Reply with a number."), art.User("7+5="))
	reply, err := m.Chat(t.Context(), sampled, &art.ChatOptions{Temperature: new(0.0)})
	require.NoError(t, err)
	forced := art.NewTrajectory(sampled.Messages[:2]...)
	_, err = m.Force(t.Context(), forced, art.Assistant(reply.Content), nil)
	require.NoError(t, err)
	got, want := forced.Messages[2].Sample, reply.Sample
	require.Equal(t, want.PromptIDs, got.PromptIDs)
	require.Equal(t, want.IDs, got.IDs)
	require.Equal(t, want.Logprobs, got.Logprobs)
	require.Equal(t, 1, got.Step)

	sampled.Reward = 1
	group := &art.TrajectoryGroup{Trajectories: []*art.Trajectory{sampled, forced}}
	result, err := m.Train(t.Context(), []*art.TrajectoryGroup{group}, &art.TrainConfig{LearningRate: 1e-3})
	require.NoError(t, err)
	require.Zero(t, result.Metrics["train/logprob_gap_max"])
	require.Empty(t, result.Skipped)
}

// TestState_IsMerged: the state of the user is merged key by key, and survives the process.
func TestState_IsMerged(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	var state map[string]any
	found, err := m.LoadState(t.Context(), &state)
	require.NoError(t, err)
	require.False(t, found)
	require.NoError(t, m.SaveState(t.Context(),
		map[string]any{"data": map[string]any{"file": "a", "line": 3}, "epoch": 1}))
	require.NoError(t, m.SaveState(t.Context(), map[string]any{"data": map[string]any{"line": 4}, "epoch": nil}))
	require.NoError(t, b.Close())
	b = open(t, dir)
	m = art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	found, err = m.LoadState(t.Context(), &state)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, map[string]any{"data": map[string]any{"file": "a", "line": 4.0}}, state)
}
