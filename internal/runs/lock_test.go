package runs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// changes are all the ways to change a run at step 1.
func changes(r *Run) map[string]func() error {
	write := func(dir string) error { return os.WriteFile(filepath.Join(dir, "x"), nil, 0o644) }
	return map[string]func() error{
		"commit":       func() error { return r.Commit(2, write) },
		"update":       func() error { return r.CommitUpdate(2, stepUpdate(1), write) },
		"delete":       func() error { return r.DeleteCheckpoints(nil) },
		"log":          func() error { return r.Log("val", 0, nil) },
		"model":        func() error { return r.WriteModel(map[string]int{}) },
		"state":        func() error { return r.WriteState(1) },
		"merge":        func() error { return r.MergeState(map[string]int{}) },
		"trajectories": func() error { return r.WriteTrajectories("val", 0, nil) },
	}
}

// After rm -rf of an open run, the program went on in a folder that it made anew, without the steps before.
func TestLock_FolderDeleted(t *testing.T) {
	r := openTemp(t, 1)
	require.NoError(t, os.RemoveAll(r.Dir()))
	for name, change := range changes(r) {
		err := change()
		require.ErrorIs(t, err, art.ErrStorage, name)
		require.ErrorContains(t, err, "deleted, moved or replaced", name)
		require.NoDirExists(t, r.Dir(), name)
	}
}

// A second process that began the deleted run anew is not written beside.
func TestLock_FolderReplaced(t *testing.T) {
	r := openTemp(t, 1)
	require.NoError(t, os.RemoveAll(r.Dir()))
	second, err := openRun(filepath.Join(r.Dir(), "..", "..", ".."), disk{})
	require.NoError(t, err)
	defer func() { require.NoError(t, second.Close()) }()
	before := listing(t, r.Dir())
	for name, change := range changes(r) {
		require.ErrorIs(t, change(), errGone, name)
	}
	require.Equal(t, before, listing(t, r.Dir()))
	require.NoError(t, makeStep(second, 0))
}

// A folder that is deleted in the middle of a change is not made anew either.
func TestLock_FolderDeletedMeanwhile(t *testing.T) {
	for name := range changes(nil) {
		for at := 0; ; at++ {
			root := tempDir(t)
			makeTwoSteps(t, root)
			count, deleteAt := 0, -1
			d := disk{Hook: func(_, _ string, do func() error) error {
				if err := do(); err != nil {
					return err
				}
				if count++; count-1 == deleteAt {
					return os.RemoveAll(filepath.Join(root, "project"))
				}
				return nil
			}}
			r, err := openRun(root, d)
			require.NoError(t, err)
			deleteAt = count + at
			err = changes(r)[name]()
			require.NoError(t, r.Close())
			if count <= deleteAt {
				require.NoError(t, err, name)
				break // the change has no more parts
			}
			require.NoDirExists(t, filepath.Join(root, "project"), "%s, after part %d", name, at)
		}
	}
}

// A folder that was moved away and put back is the run's again.
func TestLock_FolderPutBack(t *testing.T) {
	r := openTemp(t, 1)
	require.NoError(t, os.Rename(r.Dir(), r.Dir()+".away"))
	require.ErrorIs(t, r.Log("val", 0, nil), errGone)
	require.NoError(t, os.Rename(r.Dir()+".away", r.Dir()))
	require.NoError(t, r.Log("val", 0, nil))
}

func listing(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return err
	}))
	return names
}
