package local

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// TestTrain_RunDeleted: a program whose run was deleted at step 1 made its folders again, lost steps 0 and 1, and ended
// well.
func TestTrain_RunDeleted(t *testing.T) {
	b := open(t, t.TempDir())
	m := trained(t, b, "m", nil)
	dir, err := b.Dir(m)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 6})
	require.NoError(t, err)
	_, err = m.Train(t.Context(), groups, nil)
	require.ErrorIs(t, err, art.ErrStorage)
	require.ErrorContains(t, err, dir)
	require.ErrorIs(t, m.Log(t.Context(), "val", groups, nil), art.ErrStorage)
	require.Equal(t, 1, m.Step())
	require.NoDirExists(t, dir)
}

// TestTrain_RowOfThePolicy: rewards of policy k, logged after Train, were stored at k+1, and a program that stopped
// between Train and Log left no rewards at all.
func TestTrain_RowOfThePolicy(t *testing.T) {
	for _, log := range []bool{false, true} {
		dir := t.TempDir()
		b := open(t, dir)
		m := art.NewModel("m", nil)
		require.NoError(t, m.Register(t.Context(), b))
		var rewards []float64
		for range 2 {
			six := &art.GatherOptions{GroupSize: 6}
			groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), six)
			require.NoError(t, err)
			rewards = append(rewards, art.Metrics(groups...)["reward"])
			result, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-3})
			require.NoError(t, err)
			if log {
				require.NoError(t, m.Log(t.Context(), "train", groups, result.Metrics))
			}
		}
		require.NoError(t, b.Close())
		b = open(t, dir)
		m = art.NewModel("m", nil)
		require.NoError(t, m.Register(t.Context(), b))
		require.Equal(t, 2, m.Step())
		rows, err := b.History(t.Context(), m)
		require.NoError(t, err)
		require.Len(t, rows, 2, "logged: %v", log)
		for k, row := range rows {
			require.Equal(t, "train", row.Split)
			require.Equal(t, k, row.Step)
			require.Equal(t, rewards[k], row.Metrics["train/reward"])
			require.Contains(t, row.Metrics, "loss/policy")
			groups, err := b.Trajectories(t.Context(), m, "train", k)
			require.NoError(t, err)
			require.Equal(t, k, groups[0].Trajectories[0].Samples()[0].Step)
		}
	}
}

// TestTrainSFT_Row: a supervised update has a train row as any other, without rewards, which nothing earned.
func TestTrainSFT_Row(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	lesson := art.NewTrajectory(art.User("7+5="), art.Assistant("12"))
	_, err := m.TrainSFT(t.Context(), []*art.Trajectory{lesson, nil}, nil)
	require.NoError(t, err)
	rows, err := b.History(t.Context(), m)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Equal(t, "train", rows[0].Split)
	require.Zero(t, rows[0].Step)
	require.Contains(t, rows[0].Metrics, "loss/sft")
	require.NotContains(t, rows[0].Metrics, "train/reward")
	groups, err := b.Trajectories(t.Context(), m, "train", 0)
	require.NoError(t, err)
	require.Len(t, groups[0].Trajectories, 1)
}

// TestRegister_TellsDamage: an emptied history, a deleted model.json and a damaged older checkpoint passed unnoticed.
func TestRegister_TellsDamage(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	trained(t, b, "m", nil)
	require.NoError(t, b.Close())
	run := filepath.Join(dir, "default", "models", "m")
	require.NoError(t, os.Truncate(filepath.Join(run, "history.jsonl"), 0))
	require.NoError(t, os.Truncate(filepath.Join(run, "checkpoints", "0000", "optimizer.safetensors"), 10))

	var logged bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&logged, nil))
	b, err := Open(t.Context(), &Options{Dir: dir, Progress: io.Discard, Logger: logger})
	require.NoError(t, err)
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	for _, text := range []string{
		"history.jsonl differs from what was written", "no train row of some steps", "an older checkpoint is damaged",
	} {
		require.Contains(t, logged.String(), text)
	}
	require.NoError(t, b.Close())

	require.NoError(t, os.Remove(filepath.Join(run, "model.json")))
	err = art.NewModel("m", &art.ModelOptions{Seed: 9}).Register(t.Context(), open(t, dir))
	require.ErrorIs(t, err, art.ErrCorrupt)
	require.ErrorContains(t, err, "copy "+filepath.Join(run, "checkpoints", "0001", "model.json"))
}
