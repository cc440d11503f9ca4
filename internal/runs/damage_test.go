package runs

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// threeSteps makes steps 0 to 3, measures the last and closes the run.
func threeSteps(t *testing.T) *Run {
	t.Helper()
	r, err := openRun(tempDir(t), disk{})
	require.NoError(t, err)
	for step := range 4 {
		require.NoError(t, makeStep(r, step))
	}
	require.NoError(t, r.Log("val", 3, map[string]float64{"reward": 3.25}))
	require.NoError(t, r.Close())
	return r
}

// openLogged opens a closed run again, and returns what is logged.
func openLogged(t *testing.T, r *Run) (*Run, string) {
	t.Helper()
	var log bytes.Buffer
	root := filepath.Join(r.Dir(), "..", "..", "..")
	again, err := Open(root, "project", "model", &Options{Now: clock, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, again.Close()) })
	return again, log.String()
}

func TestDamage_None(t *testing.T) {
	r, log := openLogged(t, threeSteps(t))
	require.Zero(t, r.Damage())
	require.NotContains(t, log, "WARN")
}

// A history that was emptied, deleted, cut or edited passed unnoticed.
func TestDamage_History(t *testing.T) {
	lines := func(content []byte) [][]byte { return bytes.SplitAfter(content, []byte("\n")) }
	for name, c := range map[string]struct {
		damage func(content []byte) []byte
		rows   []int // that are missing
	}{
		"emptied":         {func([]byte) []byte { return []byte{} }, []int{0, 1, 2}},
		"deleted":         {func([]byte) []byte { return nil }, []int{0, 1, 2}},
		"cut in half":     {func(b []byte) []byte { return b[:len(b)/2] }, []int{1, 2}},
		"last row cut":    {func(b []byte) []byte { return bytes.Join(lines(b)[:len(lines(b))-2], nil) }, nil},
		"last byte cut":   {func(b []byte) []byte { return b[:len(b)-2] }, nil},
		"first row cut":   {func(b []byte) []byte { return bytes.Join(lines(b)[1:], nil) }, nil},
		"a number edited": {func(b []byte) []byte { return bytes.Replace(b, []byte("1.5"), []byte("9.5"), 1) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := threeSteps(t)
			content, err := os.ReadFile(r.historyPath())
			require.NoError(t, err)
			require.NoError(t, os.Remove(r.historyPath()))
			if content = c.damage(content); content != nil {
				require.NoError(t, os.WriteFile(r.historyPath(), content, 0o644))
			}
			again, log := openLogged(t, r)
			require.Equal(t, Damage{History: true, Rows: c.rows}, again.Damage())
			require.Contains(t, log, "history.jsonl differs from what was written")
			if c.rows != nil {
				require.Contains(t, log, "steps="+quoted(ranges(c.rows)))
			}
			require.NoError(t, makeStep(again, 4), "it goes on")
			require.NoError(t, again.Close())
			third, log := openLogged(t, again)
			require.Equal(t, Damage{Rows: c.rows}, third.Damage(), "missing rows are logged each time")
			require.Equal(t, c.rows != nil, bytes.Contains([]byte(log), []byte("level=WARN")))
		})
	}
}

// quoted is how a text handler of slog writes a value.
func quoted(s string) string {
	if bytes.ContainsAny([]byte(s), " ,") {
		return `"` + s + `"`
	}
	return s
}

func TestDamage_HistoryChecksum(t *testing.T) {
	for _, content := range []string{"", "{", `{"files":1}`} {
		r := threeSteps(t)
		path := filepath.Join(r.Dir(), historySumName)
		require.NoError(t, os.Remove(path))
		if content != "" {
			require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
		}
		again, _ := openLogged(t, r)
		require.Equal(t, Damage{History: true}, again.Damage())
	}
}

// Damage of a checkpoint that nothing reads on the way passed unnoticed.
func TestDamage_OlderCheckpoint(t *testing.T) {
	old := time.Now().Add(-time.Hour)
	for name, damage := range map[string]func(dir string) error{
		"cut":        func(dir string) error { return os.Truncate(filepath.Join(dir, "adapter.bin"), 5) },
		"missing":    func(dir string) error { return os.Remove(filepath.Join(dir, "deep/er/opt.bin")) },
		"manifest":   func(dir string) error { return os.Truncate(filepath.Join(dir, manifestName), 2) },
		"same size":  func(dir string) error { return flipByte(filepath.Join(dir, "adapter.bin")) },
		"of a copy":  func(dir string) error { return os.Truncate(filepath.Join(dir, "model.json"), 0) },
		"no content": os.RemoveAll,
	} {
		t.Run(name, func(t *testing.T) {
			r := threeSteps(t)
			for _, step := range []int{1, 2} { // so that the clock of the file system makes no difference
				for file := range stepFiles(step) {
					require.NoError(t, os.Chtimes(filepath.Join(r.checkpointDir(step), file), old, old))
				}
				require.NoError(t, os.Chtimes(filepath.Join(r.checkpointDir(step), modelName), old, old))
				require.NoError(t, os.Chtimes(filepath.Join(r.checkpointDir(step), manifestName), old, old))
			}
			require.NoError(t, damage(r.checkpointDir(1)))
			if name == "no content" {
				require.NoError(t, os.Mkdir(r.checkpointDir(1), 0o755))
			}
			again, log := openLogged(t, r)
			require.Equal(t, Damage{Checkpoints: []int{1}}, again.Damage())
			require.Contains(t, log, "an older checkpoint is damaged")
			require.ErrorIs(t, again.DeleteCheckpoints([]int{1}), art.ErrCorrupt)
			require.Equal(t, []int{0, 1, 2, 3}, again.Steps(), "nothing was deleted for the sake of a damaged one")
			require.NoError(t, again.DeleteCheckpoints([]int{2}))
		})
	}
}

func flipByte(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	content[0] ^= 1
	return os.WriteFile(path, content, 0o644)
}

// A copy that did not keep the times is read once, and no more.
func TestDamage_CopiedRun(t *testing.T) {
	r := threeSteps(t)
	dir := r.checkpointDir(1)
	adapter, manifest := filepath.Join(dir, "adapter.bin"), filepath.Join(dir, manifestName)
	later := time.Now().Add(time.Hour).Truncate(time.Second)
	require.NoError(t, os.Chtimes(adapter, later, later))
	again, _ := openLogged(t, r)
	require.Zero(t, again.Damage())
	info, err := os.Stat(manifest)
	require.NoError(t, err)
	require.True(t, info.ModTime().Equal(later))
}

func TestDamage_Trajectories(t *testing.T) {
	r := threeSteps(t)
	require.NoError(t, os.Remove(r.trajectoryPath("train", 1)))
	require.NoError(t, os.Truncate(r.trajectoryPath("train", 2), 0))
	require.NoError(t, os.Truncate(r.trajectoryPath("val", 0), size(r.trajectoryPath("val", 0))-1))
	again, log := openLogged(t, r)
	want := []string{"train/0001.parquet", "train/0002.parquet", "val/0000.parquet"}
	require.ElementsMatch(t, want, again.Damage().Trajectories)
	require.Contains(t, log, "trajectories are missing or damaged")
}

func TestRanges(t *testing.T) {
	for want, steps := range map[string][]int{
		"": nil, "3": {3}, "0-2": {0, 1, 2}, "0-1, 3, 5-6": {0, 1, 3, 5, 6}, "0, 2-4, 7": {0, 2, 3, 4, 7},
	} {
		require.Equal(t, want, ranges(steps))
	}
}

func FuzzHistorySum(f *testing.F) {
	f.Add([]byte(`{"before":{"size":0,"sha256":""},"after":{"size":3,"sha256":"00"}}`), []byte("row"))
	f.Add([]byte(`{"before":{"size":-1}}`), []byte(""))
	f.Add([]byte(`{"before":{"size":9223372036854775807}}`), []byte("x"))
	f.Fuzz(func(t *testing.T, content, history []byte) {
		s, err := parseHistorySum(content)
		if err == nil && s.allows(history) {
			size := s.Before.Size
			require.True(t, s.After.Size == int64(len(history)) || size >= 0 && size <= int64(len(history)))
		}
	})
}
