package rundir_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/runs"
)

// store makes a run with two steps, the first of which is better.
func store(t *testing.T, root, project, name string) {
	t.Helper()
	r, err := runs.Open(root, project, name, nil)
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, r.WriteModel(rundir.Description{Name: name, Project: project, Base: "tiny", Seed: 7}))
	write := func(dir string) error { return os.WriteFile(filepath.Join(dir, "weights"), []byte("w"), 0o644) }
	require.NoError(t, r.Commit(0, write))
	groups := []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{Reward: 2}}}}
	for step := range 2 {
		require.NoError(t, r.CommitUpdate(step+1, runs.Update{Groups: groups, Metrics: map[string]float64{"reward": 2}},
			write))
		require.NoError(t, r.Log("val", step+1, map[string]float64{"reward": float64(9 - step)}))
	}
	require.NoError(t, r.WriteState(map[string]int{"line": 3}))
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	store(t, root, "p", "a")
	store(t, root, "p", "b")
	store(t, root, "q", "b")
	for name, want := range map[string]struct {
		project string
		step    int
	}{"a": {"p", 2}, "p/a@1": {"p", 1}, "a@best": {"p", 1}, "q/b": {"q", 2}} {
		r, step, err := rundir.Find(root, name)
		require.NoError(t, err, name)
		require.Equal(t, want.project, r.About().Project, name)
		require.Equal(t, want.step, step, name)
	}
	_, _, err := rundir.Find(root, "b")
	require.ErrorContains(t, err, "several projects")
	_, _, err = rundir.Find(root, "c")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, _, err = rundir.Find(root, "/c")
	require.ErrorIs(t, err, art.ErrInvalid)
}

func TestRun_ReadsAll(t *testing.T) {
	root := t.TempDir()
	store(t, root, "p", "a")
	all, err := rundir.List(root)
	require.NoError(t, err)
	require.Len(t, all, 1)
	r := all[0]
	require.Equal(t, rundir.Description{Name: "a", Project: "p", Base: "tiny", Seed: 7}, r.About())
	require.Equal(t, filepath.Join(root, "p", "models", "a"), r.Dir())
	steps, err := r.Steps()
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2}, steps)
	rows, err := r.History()
	require.NoError(t, err)
	require.Len(t, rows, 4)
	stored, err := r.Trajectories()
	require.NoError(t, err)
	require.Equal(t, map[string][]int{"train": {0, 1}}, stored)
	groups, err := r.ReadTrajectories("train", 1)
	require.NoError(t, err)
	require.Equal(t, 2.0, groups[0].Trajectories[0].Reward)
	_, err = r.ReadTrajectories("val", 1)
	require.ErrorIs(t, err, fs.ErrNotExist)
	var state struct{ Line int }
	found, err := r.State(&state)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, 3, state.Line)
	dir, err := r.Checkpoint(1)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "weights"))
}

// A run that cannot be opened does not hide the others.
func TestList_Damaged(t *testing.T) {
	root := t.TempDir()
	store(t, root, "p", "a")
	store(t, root, "p", "b")
	require.NoError(t, os.WriteFile(filepath.Join(root, "p", "models", "a", "model.json"), []byte("{"), 0o644))
	all, err := rundir.List(root)
	require.ErrorIs(t, err, art.ErrCorrupt)
	require.Len(t, all, 1)
	none, err := rundir.List(filepath.Join(root, "none"))
	require.NoError(t, err)
	require.Empty(t, none)
}
