package runs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// clock is the time of every row.
func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// openRun opens the run that makeStep and checkRun work with, and describes it when it is new.
func openRun(root string, d disk) (*Run, error) {
	r, err := open(root, "project", "model", &Options{Now: clock}, d)
	if err != nil {
		return nil, err
	}
	known, err := r.ReadModel(new(map[string]any))
	if err == nil && !known {
		err = r.WriteModel(map[string]string{"base": "tiny"})
	}
	if err != nil {
		return nil, errors.Join(err, r.lock.Close())
	}
	return r, nil
}

// tempDir is a folder in memory where there is such a thing, so that fsync takes no time.
func tempDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "runs")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// openTemp opens a run in a folder of its own and commits steps 0 to last.
func openTemp(t *testing.T, last int) *Run {
	t.Helper()
	r, err := openRun(tempDir(t), disk{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	for step := range last + 1 {
		require.NoError(t, r.Commit(step, func(dir string) error { return writeFiles(dir, stepFiles(step)) }))
	}
	return r
}

// reopen closes a run and opens it again.
func reopen(t *testing.T, r *Run) (*Run, error) {
	t.Helper()
	require.NoError(t, r.Close())
	again, err := openRun(filepath.Join(r.Dir(), "..", "..", ".."), disk{})
	if err == nil {
		t.Cleanup(func() { require.NoError(t, again.Close()) })
	}
	return again, err
}

// stepGroups are the trajectories of a step.
func stepGroups(step int) []*art.TrajectoryGroup {
	return generator{rand.New(rand.NewPCG(uint64(step), 1))}.groups(1)
}

// stepParquet is the file of stepGroups.
func stepParquet(t *testing.T, step int) []byte {
	content, ok := parquets.Load(step)
	if !ok {
		encoded, err := encodeGroups(stepGroups(step))
		require.NoError(t, err)
		content, _ = parquets.LoadOrStore(step, encoded)
	}
	return content.([]byte)
}

var parquets sync.Map // by step

// stepFiles are the files of a checkpoint.
func stepFiles(step int) map[string]string {
	return map[string]string{
		"adapter.bin":     strings.Repeat(fmt.Sprintf("weights of %d\n", step), 2000),
		"deep/er/opt.bin": fmt.Sprintf("moments of %d", step),
		"empty":           "",
	}
}

func writeFiles(dir string, files map[string]string) error {
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// makeStep does what a program and a backend do for a step, in their order: it measures policy step-1, trains it, and
// commits step.
func makeStep(r *Run, step int) error {
	if err := r.MergeState(stepState(step)); err != nil {
		return err
	}
	if err := r.Log("best", 0, map[string]float64{"step": float64(step)}); err != nil { // changes a row
		return err
	}
	write := func(dir string) error { return writeFiles(dir, stepFiles(step)) }
	if step == 0 {
		return r.Commit(0, write)
	}
	policy := step - 1
	if err := r.WriteTrajectories("val", policy, nil); err != nil {
		return err
	}
	if err := r.Log("val", policy, map[string]float64{"reward": float64(policy) + 0.25}); err != nil {
		return err
	}
	if err := r.Log("train", policy, map[string]float64{"early": 1}); err != nil { // before the update
		return err
	}
	return r.CommitUpdate(step, stepUpdate(policy), write)
}

// stepState is what a pipeline stores before it makes a step: the position in the data before and after it. The one of
// the step before that is deleted.
func stepState(step int) map[string]any {
	at := func(step int) string { return strconv.Itoa(step) }
	return map[string]any{"step": step, "steps": map[string]any{
		at(step - 2): nil, at(step - 1): map[string]int{"next": 10 * (step - 1)}, at(step): map[string]int{"next": 10 * step},
	}}
}

// stepUpdate is the update from a policy to the next.
func stepUpdate(policy int) Update {
	return Update{Groups: stepGroups(policy), Metrics: map[string]float64{"reward": float64(policy) + 0.5}}
}

// checkRun makes sure that the run is at its newest step and at nothing else. It reads the last steps only.
func checkRun(t *testing.T, r *Run) {
	t.Helper()
	latest, ok := r.Latest()
	if !ok {
		latest = -1
	}
	for step := max(0, latest-4); step <= latest; step++ {
		checkStep(t, r, step)
		if step < latest {
			checkFile(t, r, step)
			require.FileExists(t, r.trajectoryPath("val", step))
		}
	}
	checkHistory(t, r, latest)
	checkNames(t, r, latest)
	checkState(t, r, latest)
}

// checkState wants the position in the data of the newest step, and of the one before or after it.
func checkState(t *testing.T, r *Run, latest int) {
	t.Helper()
	var state struct {
		Step  int
		Steps map[string]map[string]int
	}
	ok, err := r.ReadState(&state)
	require.NoError(t, err)
	if !ok {
		require.Negative(t, latest, "no state, and step %d is committed", latest)
		return
	}
	require.Contains(t, []int{latest, latest + 1}, state.Step)
	require.Len(t, state.Steps, 2)
	require.Equal(t, map[string]int{"next": 10 * latest}, state.Steps[strconv.Itoa(latest)])
}

func checkStep(t *testing.T, r *Run, step int) {
	t.Helper()
	require.NoError(t, r.Verify(step))
	dir, ok := r.Checkpoint(step)
	require.True(t, ok)
	for name, want := range stepFiles(step) {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

func checkFile(t *testing.T, r *Run, step int) {
	t.Helper()
	content, err := os.ReadFile(r.trajectoryPath("train", step))
	require.NoError(t, err)
	require.True(t, bytes.Equal(stepParquet(t, step), content), "trajectories of step %d differ", step)
}

// checkHistory wants one train row for each update, in order: none of the newest step. The newest step may have been
// measured.
func checkHistory(t *testing.T, r *Run, latest int) {
	t.Helper()
	rows, err := r.History()
	require.NoError(t, err)
	var trained, measured []int
	for _, row := range rows {
		switch row.Split {
		case "train":
			require.Equal(t, float64(row.Step)+0.5, row.Metrics["train/reward"])
			require.Equal(t, 1.0, row.Metrics["train/early"])
			trained = append(trained, row.Step)
		case "val":
			require.Equal(t, float64(row.Step)+0.25, row.Metrics["val/reward"])
			measured = append(measured, row.Step)
		case "best":
			require.Contains(t, []float64{float64(latest), float64(latest + 1)}, row.Metrics["best/step"])
		default:
			t.Fatalf("unknown row %v", row)
		}
	}
	want := upTo(latest)
	require.Equal(t, want, trained)
	if len(measured) != len(want) {
		want = upTo(latest + 1)
	}
	require.Equal(t, want, measured)
}

// upTo returns 0 to n-1.
func upTo(n int) (steps []int) {
	for step := range n {
		steps = append(steps, step)
	}
	return steps
}

// checkNames wants no file of an update that was not committed, and nothing temporary.
func checkNames(t *testing.T, r *Run, latest int) {
	t.Helper()
	err := filepath.WalkDir(r.Dir(), func(path string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		require.False(t, strings.HasPrefix(e.Name(), tempPrefix), path)
		if step, ok := parseStep(strings.TrimSuffix(e.Name(), parquetSuffix)); ok {
			require.LessOrEqual(t, step, max(latest, 0), path)
			require.False(t, step == latest && filepath.Base(filepath.Dir(path)) == "train", path)
		}
		return nil
	})
	require.NoError(t, err)
}
