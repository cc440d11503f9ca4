package runs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

func TestCommit_StepsInOrder(t *testing.T) {
	r := openTemp(t, -1)
	_, ok := r.Latest()
	require.False(t, ok)
	write := func(string) error { return nil }
	require.ErrorIs(t, r.Commit(1, write), art.ErrInvalid)
	require.NoError(t, r.Commit(0, write))
	require.ErrorIs(t, r.Commit(0, write), art.ErrInvalid)
	require.ErrorIs(t, r.Commit(2, write), art.ErrInvalid)
	require.NoError(t, r.Commit(1, write))
	require.Equal(t, []int{0, 1}, r.Steps())
	latest, ok := r.Latest()
	require.True(t, ok)
	require.Equal(t, 1, latest)
	_, ok = r.Checkpoint(2)
	require.False(t, ok)
	require.ErrorIs(t, r.Verify(2), art.ErrInvalid)
}

func TestCommit_FailedWrite(t *testing.T) {
	failure := errors.New("no gradient")
	for name, write := range map[string]func(dir string) error{
		"no gradient": func(dir string) error { return errors.Join(writeFiles(dir, stepFiles(9)), failure) },
		"panic: boom": func(dir string) error {
			if err := writeFiles(dir, stepFiles(9)); err != nil {
				return err
			}
			panic("boom")
		},
		"not a regular file": func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "link")) },
		"file exists":        func(dir string) error { return writeFiles(dir, map[string]string{manifestName: "{}"}) },
		"no such file":       os.RemoveAll,
	} {
		r := openTemp(t, 1)
		err := r.Commit(2, write)
		require.ErrorIs(t, err, art.ErrStorage, name)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "the run is as it was before")
		require.Equal(t, []int{0, 1}, r.Steps())
		checkNames(t, r, 1)
		require.NoError(t, r.Verify(1))
		require.NoError(t, r.Commit(2, func(string) error { return nil }))
	}
}

func TestDeleteCheckpoints(t *testing.T) {
	r := openTemp(t, 4)
	require.NoError(t, r.DeleteCheckpoints([]int{1, 7}))
	require.Equal(t, []int{1, 4}, r.Steps())
	require.NoDirExists(t, r.checkpointDir(2))
	require.NoError(t, r.DeleteCheckpoints(nil))
	require.Equal(t, []int{4}, r.Steps())
	require.NoError(t, r.Verify(4))
	r, err := reopen(t, r)
	require.NoError(t, err)
	require.Equal(t, []int{4}, r.Steps())
	require.Equal(t, 5, r.Next())
}

// What a commit that failed could not clean up is not part of the next one.
func TestCommit_Leftovers(t *testing.T) {
	f := &fault{at: -1, err: errors.New("gone")}
	r, err := openRun(tempDir(t), f.disk())
	require.NoError(t, err)
	require.Error(t, r.Commit(0, func(dir string) error {
		f.at = f.seen
		return writeFiles(dir, map[string]string{"old": ""})
	}))
	f.at = -1
	require.NoError(t, r.Commit(0, func(string) error { return nil }))
	require.NoFileExists(t, filepath.Join(r.checkpointDir(0), "old"))
	require.NoError(t, r.Close())
}

// A deletion that is interrupted leaves each checkpoint whole or gone.
func TestDeleteCheckpoints_Kill(t *testing.T) {
	base := tempDir(t)
	makeTwoSteps(t, base)
	for at := 0; ; at++ {
		root := copyOf(t, base)
		f := &fault{at: -1, err: errKilled}
		r, err := openRun(root, f.disk())
		require.NoError(t, err)
		f.at = f.seen + at
		err = r.DeleteCheckpoints(nil)
		kill(t, r)
		again, openErr := openRun(root, disk{})
		require.NoError(t, openErr)
		for _, step := range again.Steps() {
			require.NoError(t, again.Verify(step))
		}
		latest, _ := again.Latest()
		require.Equal(t, 1, latest)
		require.NoError(t, again.Close())
		if err == nil {
			require.Greater(t, at, 2)
			return
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"files":{"a/b":{"size":1,"sha256":"00"}}}`))
	f.Add([]byte(`{"files":{"../a":{}}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		m, err := parseManifest(content)
		if err != nil {
			return
		}
		for name := range m.Files {
			require.True(t, filepath.IsLocal(name), name)
		}
	})
}
