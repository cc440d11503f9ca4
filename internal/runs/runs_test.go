package runs

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

func TestOpen_Layout(t *testing.T) {
	root := tempDir(t)
	r, err := Open(root, "games", "player-1", nil)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(root, "games", "models", "player-1"), r.Dir())
	require.NoError(t, r.WriteModel(map[string]int{}))
	require.NoError(t, r.Log("val", 0, nil))
	require.NoError(t, r.WriteTrajectories("val", 0, nil))
	require.NoError(t, r.Commit(0, func(string) error { return nil }))
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	for _, name := range []string{
		"model.json", "history.jsonl", "history.checksum.json", "checkpoints/0000/checksums.json",
		"checkpoints/0000/model.json", "trajectories/val/0000.parquet",
	} {
		require.FileExists(t, filepath.Join(r.Dir(), name))
	}
}

func TestOpen_Names(t *testing.T) {
	root := tempDir(t)
	for _, name := range []string{"", ".", "..", "../x", "a/b", `a\b`, "%2e%2e/x", ".hidden", "a\x00", "a\n", "a@1", " a",
		"a ", "\xff", strings.Repeat("x", 129)} {
		for _, names := range [][2]string{{name, "model"}, {"project", name}} {
			_, err := Open(root, names[0], names[1], nil)
			require.ErrorIs(t, err, art.ErrInvalid, "%q", names)
		}
	}
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, entries)

	r, err := Open(root, "my games", "gracz-ż 1.5", nil)
	require.NoError(t, err)
	require.NoError(t, r.Close())
}

func TestOpen_Locked(t *testing.T) {
	r := openTemp(t, -1)
	_, err := openRun(filepath.Join(r.Dir(), "..", "..", ".."), disk{})
	require.ErrorIs(t, err, art.ErrLocked)
	require.ErrorContains(t, err, filepath.Join(r.Dir(), "lock"))
	require.ErrorContains(t, err, "this process ("+strconv.Itoa(os.Getpid())+")")

	_, err = reopen(t, r)
	require.NoError(t, err)
}

func TestOpen_RootIsAFile(t *testing.T) {
	root := filepath.Join(tempDir(t), "file")
	require.NoError(t, os.WriteFile(root, nil, 0o644))
	_, err := Open(root, "project", "model", nil)
	require.ErrorIs(t, err, art.ErrStorage)
	require.ErrorContains(t, err, root)
}

func TestClosed(t *testing.T) {
	r := openTemp(t, 0)
	require.NoError(t, r.Close())
	for name, change := range map[string]func() error{
		"commit":       func() error { return r.Commit(1, func(string) error { return nil }) },
		"delete":       func() error { return r.DeleteCheckpoints(nil) },
		"log":          func() error { return r.Log("train", 0, nil) },
		"update":       func() error { return r.CommitUpdate(1, Update{}, func(string) error { return nil }) },
		"model":        func() error { return r.WriteModel(map[string]int{}) },
		"state":        func() error { return r.WriteState(1) },
		"merge":        func() error { return r.MergeState(1) },
		"trajectories": func() error { return r.WriteTrajectories("train", 0, nil) },
	} {
		require.ErrorIs(t, change(), art.ErrClosed, name)
	}
}

func TestRecover_Interrupted(t *testing.T) {
	root := tempDir(t)
	makeTwoSteps(t, root)
	leaveDebris(t, filepath.Join(root, "project", "models", "model"))
	var log bytes.Buffer
	r, err := Open(root, "project", "model", &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer r.Close()
	checkRun(t, r)
	require.Equal(t, Recovery{Temporary: 3, Rows: 2, Files: 1, Aside: 1}, r.Recovered())
	for _, line := range []string{
		"dropped the torn last row of the history", "moved a damaged history row aside", "level=WARN",
		"dropped a history row of an update that was not committed",
		"dropped the trajectories of an update that was not committed",
		"removed what an interrupted change left",
	} {
		require.Contains(t, log.String(), line)
	}
}

// Rows and trajectories that no interruption explains are not deleted: the checkpoints may come back.
func TestRecover_MissingCheckpoints(t *testing.T) {
	root := tempDir(t)
	r, err := openRun(root, disk{})
	require.NoError(t, err)
	for step := range 4 {
		require.NoError(t, makeStep(r, step))
	}
	for _, step := range []int{2, 3} {
		require.NoError(t, os.RemoveAll(r.checkpointDir(step)))
	}
	require.NoError(t, r.Close())
	d := watch(t, root)
	r, err = openRun(root, (&fault{at: -1, durable: d}).disk())
	require.NoError(t, err)
	// Steps 0 and 1 are left. Of step 1, the train row and its trajectories look like those of an interrupted update.
	require.Equal(t, Recovery{Rows: 1, Files: 1, Aside: 4}, r.Recovered())
	kill(t, r)
	dir := filepath.Join(d.restore(t), "project", "models", "model") // the machine stops, too
	for _, split := range []string{"train", "val"} {
		require.FileExists(t, filepath.Join(dir, "trajectories", split, "0002.parquet.aside"))
		require.NoFileExists(t, filepath.Join(dir, "trajectories", split, "0002.parquet"))
	}
	aside, err := os.ReadFile(filepath.Join(dir, "history.jsonl.damaged"))
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(aside), `"step":2,`))
}

func TestRecover_DamagedCheckpoint(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"adapter.bin differs from what was written": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "adapter.bin"), []byte("other"), 0o644)
		},
		"no such file": func(dir string) error { return os.Remove(filepath.Join(dir, "deep/er/opt.bin")) },
		"checksums.json": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, manifestName), []byte("{}"), 0o644)
		},
	} {
		r := openTemp(t, 3)
		require.NoError(t, r.Log("train", 3, nil))
		require.NoError(t, damage(r.checkpointDir(3)))
		require.NoError(t, damage(r.checkpointDir(2)))
		require.ErrorIs(t, r.Verify(3), art.ErrCorrupt)

		_, err := reopen(t, r)
		require.ErrorIs(t, err, art.ErrCorrupt)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "step 1, which is intact, move the 2 newer folder(s) away")
		require.DirExists(t, r.checkpointDir(3))

		for _, step := range []int{2, 3} { // what the hint says
			require.NoError(t, os.Rename(r.checkpointDir(step), filepath.Join(r.Dir(), "old"+stepName(step))))
		}
		r, err = reopen(t, r)
		require.NoError(t, err)
		require.Equal(t, 2, r.Next())
	}
}

func TestRecover_NoIntactCheckpoint(t *testing.T) {
	r := openTemp(t, 0)
	require.NoError(t, os.Remove(filepath.Join(r.checkpointDir(0), manifestName)))
	_, err := reopen(t, r)
	require.ErrorIs(t, err, art.ErrCorrupt)
	require.ErrorContains(t, err, "no other checkpoint is intact")
}
