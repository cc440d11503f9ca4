package runs

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// trainRow returns the metrics of the train row of a step; nil for none.
func trainRow(t *testing.T, r *Run, step int) map[string]float64 {
	t.Helper()
	rows, err := r.History()
	require.NoError(t, err)
	for _, row := range rows {
		if row.Split == "train" && row.Step == step {
			return row.Metrics
		}
	}
	return nil
}

func noFiles(string) error { return nil }

// The rewards of policy k were stored at k+1. Now row k holds them with the update from k to k+1, and they are there as
// soon as checkpoint k+1 is: a stop between training and logging left a step without them.
func TestCommitUpdate_RowOfThePolicy(t *testing.T) {
	r := openTemp(t, 0)
	require.NoError(t, r.CommitUpdate(1, stepUpdate(0), noFiles))
	r, err := reopen(t, r)
	require.NoError(t, err)
	require.Equal(t, 0.5, trainRow(t, r, 0)["train/reward"])
	require.Nil(t, trainRow(t, r, 1))
	groups, err := r.ReadTrajectories("train", 0)
	require.NoError(t, err)
	require.Equal(t, stepGroups(0), groups)
	require.Zero(t, r.Damage())
}

func TestCommitUpdate_Refused(t *testing.T) {
	r := openTemp(t, 1)
	for name, err := range map[string]error{
		"too late": r.CommitUpdate(3, Update{}, noFiles),
		"again":    r.CommitUpdate(1, Update{}, noFiles),
		"nil":      r.CommitUpdate(2, Update{Groups: []*art.TrajectoryGroup{nil}}, noFiles),
		"key":      r.CommitUpdate(2, Update{Metrics: map[string]float64{"": 1}}, noFiles),
	} {
		require.ErrorIs(t, err, art.ErrInvalid, name)
	}
	require.ErrorIs(t, openTemp(t, -1).CommitUpdate(0, Update{}, noFiles), art.ErrInvalid, "step 0 is no update")
	require.Equal(t, []int{0, 1}, r.Steps())
	require.NoFileExists(t, r.historyPath())
}

// What a program logs for a policy before it is trained stays, and is dropped when the run stops before the commit.
func TestCommitUpdate_LoggedBefore(t *testing.T) {
	for _, commit := range []bool{true, false} {
		r := openTemp(t, 0)
		require.NoError(t, r.Log("train", 0, map[string]float64{"seconds": 3, "reward": 9}))
		require.NoError(t, r.Log("val", 0, map[string]float64{"reward": 1}))
		require.NoError(t, r.WriteTrajectories("train", 0, append(stepGroups(7), stepGroups(0)...)))
		if commit {
			require.NoError(t, r.CommitUpdate(1, stepUpdate(0), noFiles))
		}
		r, err := reopen(t, r)
		require.NoError(t, err)
		groups, err := r.ReadTrajectories("train", 0)
		rows, _ := r.History()
		if !commit {
			require.ErrorIs(t, err, os.ErrNotExist)
			require.Len(t, rows, 1, "that of val")
			continue
		}
		require.NoError(t, err)
		want := append(stepGroups(0), stepGroups(7)...)
		require.Equal(t, want, groups, "those that were trained on come first, none twice")
		require.Len(t, rows, 2)
		require.Equal(t, 3.0, trainRow(t, r, 0)["train/seconds"])
		require.Equal(t, 0.5, trainRow(t, r, 0)["train/reward"])
	}
}

// An update that fails leaves nothing in the row and the trajectories of the next attempt.
func TestCommitUpdate_FailedAttempt(t *testing.T) {
	failure := errors.New("no gradient")
	for _, logged := range []bool{false, true} {
		r := openTemp(t, 0)
		if logged {
			require.NoError(t, r.Log("train", 0, map[string]float64{"seconds": 3}))
			require.NoError(t, r.WriteTrajectories("train", 0, stepGroups(7)))
		}
		before := trainRow(t, r, 0)
		bad := Update{Groups: stepGroups(1), Metrics: map[string]float64{"bad": 1}}
		require.ErrorIs(t, r.CommitUpdate(1, bad, func(string) error { return failure }), failure)
		require.Equal(t, before, trainRow(t, r, 0))
		require.NoError(t, r.CommitUpdate(1, stepUpdate(0), noFiles))
		require.NotContains(t, trainRow(t, r, 0), "train/bad")
		want := stepGroups(0)
		if logged {
			want = append(want, stepGroups(7)...)
		}
		groups, err := r.ReadTrajectories("train", 0)
		require.NoError(t, err)
		require.Equal(t, want, groups)
	}
}

// While a failed update cannot be rolled back, nothing is stored on top of it; checkpoints can be deleted, which makes
// room.
func TestCommitUpdate_TakenBackLater(t *testing.T) {
	f := &fault{at: -1, err: syscall.ENOSPC}
	r, err := openRun(tempDir(t), f.disk())
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	for step := range 3 {
		require.NoError(t, makeStep(r, step))
	}
	bad := Update{Groups: stepGroups(1), Metrics: map[string]float64{"bad": 1}}
	require.Error(t, r.CommitUpdate(3, bad, func(string) error { f.at = f.seen; return nil }))
	require.ErrorIs(t, r.Log("val", 2, nil), art.ErrStorage)
	f.at = -1
	require.NoError(t, r.DeleteCheckpoints([]int{1}))
	require.NoError(t, r.Log("val", 2, nil))
	require.Nil(t, trainRow(t, r, 2))
	require.NoFileExists(t, r.trajectoryPath("train", 2))
	require.NoError(t, r.CommitUpdate(3, stepUpdate(2), noFiles))
	require.Equal(t, 2.5, trainRow(t, r, 2)["train/reward"])
}

// What an update was trained on is not replaced by what is logged for its step: the same is stored once, more is added.
func TestWriteTrajectories_KeepsWhatWasTrainedOn(t *testing.T) {
	r := openTemp(t, 0)
	require.NoError(t, r.CommitUpdate(1, stepUpdate(0), noFiles))
	all := append(stepGroups(7), stepGroups(0)...)
	for _, groups := range [][]*art.TrajectoryGroup{stepGroups(0), all, all, stepGroups(7), nil} {
		require.NoError(t, r.WriteTrajectories("train", 0, groups))
	}
	got, err := r.ReadTrajectories("train", 0)
	require.NoError(t, err)
	require.Equal(t, append(stepGroups(0), stepGroups(7)...), got)

	require.NoError(t, os.WriteFile(r.trajectoryPath("train", 0), []byte("PAR1"), 0o644))
	require.ErrorIs(t, r.WriteTrajectories("train", 0, all), art.ErrCorrupt)
}
