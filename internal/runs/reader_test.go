package runs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// TestReader_WhileOpen: a reader sees what is committed while another process has the run, and nothing else.
func TestReader_WhileOpen(t *testing.T) {
	root := t.TempDir()
	r, err := Open(root, "p", "m", nil)
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, r.WriteModel(map[string]string{"name": "m"}))
	write := func(dir string) error { return os.WriteFile(filepath.Join(dir, "weights"), []byte("w"), 0o644) }
	require.NoError(t, r.Commit(0, write))
	groups := []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{Reward: 2}}}}
	require.NoError(t, r.CommitUpdate(1, Update{Groups: groups, Metrics: map[string]float64{"reward": 2}}, write))
	require.NoError(t, r.Log("val", 1, map[string]float64{"reward": 3}))
	require.NoError(t, r.Log("train", 1, map[string]float64{"reward": 9})) // of an update that is not committed
	require.NoError(t, r.WriteTrajectories("train", 1, groups))

	dirs, err := List(root)
	require.NoError(t, err)
	require.Equal(t, []string{r.Dir()}, dirs)
	reader, err := NewReader(dirs[0])
	require.NoError(t, err)
	var model struct{ Name string }
	require.NoError(t, reader.Model(&model))
	require.Equal(t, "m", model.Name)
	steps, err := reader.Steps()
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, steps)
	rows, err := reader.History()
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, 3.0, rows[1].Metrics["val/reward"])
	stored, err := reader.Trajectories()
	require.NoError(t, err)
	require.Equal(t, map[string][]int{"train": {0}}, stored)
	read, err := reader.ReadTrajectories("train", 0)
	require.NoError(t, err)
	require.Equal(t, 2.0, read[0].Trajectories[0].Reward)
	best, err := reader.Resolve(Best)
	require.NoError(t, err)
	require.Equal(t, 1, best)
	newest, err := reader.Resolve("")
	require.NoError(t, err)
	require.Equal(t, 1, newest)
}

// TestReader_Invalid: what is not a run says so, and a damaged checkpoint is found.
func TestReader_Invalid(t *testing.T) {
	root := t.TempDir()
	_, err := NewReader(filepath.Join(root, "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = NewReader(root)
	require.ErrorContains(t, err, "is not a run directory")

	r, err := Open(root, "p", "m", nil)
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, r.WriteModel(map[string]string{"name": "m"}))
	reader, err := NewReader(r.Dir())
	require.NoError(t, err)
	_, err = reader.Checkpoint(0)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, "it has none")
	require.NoError(t, r.Commit(0,
		func(dir string) error { return os.WriteFile(filepath.Join(dir, "w"), []byte("w"), 0o644) }))
	dir, err := reader.Checkpoint(0)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w"), []byte("x"), 0o644))
	_, err = reader.Checkpoint(0)
	require.ErrorIs(t, err, art.ErrCorrupt)
}

// TestCopyCheckpoint: a copied step has the same files, verifies, and outlives the one that it was copied from.
func TestCopyCheckpoint(t *testing.T) {
	r, err := Open(t.TempDir(), "p", "m", nil)
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, r.WriteModel(map[string]string{"name": "m"}))
	require.NoError(t, r.Commit(0, func(dir string) error {
		return errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o755),
			os.WriteFile(filepath.Join(dir, "sub", "w"), []byte("weights"), 0o644))
	}))
	from, _ := r.Checkpoint(0)
	require.NoError(t, r.CommitUpdate(1, Update{}, CopyCheckpoint(from)))
	require.NoError(t, r.DeleteCheckpoints(nil))
	require.Equal(t, []int{1}, r.Steps())
	require.NoError(t, r.Verify(1))
	to, _ := r.Checkpoint(1)
	content, err := os.ReadFile(filepath.Join(to, "sub", "w"))
	require.NoError(t, err)
	require.Equal(t, "weights", string(content))
}

func TestParseReference(t *testing.T) {
	for text, want := range map[string]Reference{
		"a": {"p", "a", ""}, "a@3": {"p", "a", "3"}, "q/a@best": {"q", "a", "best"}, "q/a": {"q", "a", ""},
	} {
		got, err := ParseReference(text, "p")
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "a@", "a@x", "a@-1", "a/b/c", "/a", "a/", "../a", "a@1@2"} {
		_, err := ParseReference(text, "p")
		require.ErrorIs(t, err, art.ErrInvalid, text)
	}
}
