package runs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// windowsRules is a disk with the rules of Windows: folders are not fsynced, what is open is neither renamed nor
// replaced nor removed, and names that differ in case only are one.
func windowsRules(t *testing.T) disk {
	return disk{Hook: func(op, path string, do func() error) error {
		switch op {
		case "syncdir":
			return nil
		case "rename", "remove", "truncate":
			if open := openBelow(t, path); open != "" {
				return fmt.Errorf("%s %s: %s is open", op, path, open)
			}
			if temp := filepath.Join(filepath.Dir(path), tempPrefix+filepath.Base(path)); op == "rename" {
				if open := openBelow(t, temp); open != "" {
					return fmt.Errorf("%s to %s: %s is open", op, path, open)
				}
			}
		}
		if err := sameButForCase(path); err != nil {
			return err
		}
		return do()
	}}
}

// openBelow returns a file of this process that is open, path itself or below it.
func openBelow(t *testing.T, path string) string {
	links, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, link := range links {
		target, err := os.Readlink("/proc/self/fd/" + link.Name())
		if err == nil && (target == path || strings.HasPrefix(target, path+string(filepath.Separator))) {
			return target
		}
	}
	return ""
}

// sameButForCase returns an error when a name differs from one beside it in case only.
func sameButForCase(path string) error {
	beside, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, e := range beside {
		if name := filepath.Base(path); e.Name() != name && strings.EqualFold(e.Name(), name) {
			return fmt.Errorf("%s is %s", path, e.Name())
		}
	}
	return nil
}

// TestWindows_Rules: a run is stored, recovered, opened again and pruned under the rules of Windows.
func TestWindows_Rules(t *testing.T) {
	if _, err := os.ReadDir("/proc/self/fd"); err != nil {
		t.Skip("there is no /proc/self/fd, which tells what is open")
	}
	root := tempDir(t)
	for step := range 4 {
		r, err := openRun(root, windowsRules(t))
		require.NoError(t, err)
		require.NoError(t, makeStep(r, step))
		groups := []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{Reward: float64(step)}}}}
		for range 2 { // the second replaces
			require.NoError(t, r.WriteTrajectories("val", step, groups))
			groups[0].Trajectories[0].Reward++
		}
		require.NoError(t, r.Log("val", step, map[string]float64{"reward": 1}))
		require.NoError(t, r.MergeState(map[string]int{"step": step}))
		require.NoError(t, r.SaveWeights(fmt.Sprint("w", step), func(dir string) error {
			return writeFiles(dir, stepFiles(step))
		}))
		require.NoError(t, r.Close())
		require.NoError(t, os.WriteFile(filepath.Join(r.Dir(), "checkpoints", tempPrefix+"0009"), nil, 0o644))
	}
	r, err := openRun(root, windowsRules(t))
	require.NoError(t, err)
	require.Equal(t, 1, r.Recovered().Temporary)
	require.Zero(t, r.Damage())
	require.NoError(t, r.DeleteCheckpoints([]int{1}))
	require.Equal(t, []int{1, 3}, r.Steps())
	require.NoError(t, r.DeleteWeights("w0"))
	require.NoError(t, r.Close())
}

// The rules themselves are noticed when they are broken.
func TestWindows_RulesAreKept(t *testing.T) {
	if _, err := os.ReadDir("/proc/self/fd"); err != nil {
		t.Skip("there is no /proc/self/fd, which tells what is open")
	}
	dir := tempDir(t)
	d := windowsRules(t)
	path := filepath.Join(dir, "file")
	require.NoError(t, d.Replace(path, []byte("1")))
	f, err := os.Open(path)
	require.NoError(t, err)
	require.ErrorContains(t, d.Replace(path, []byte("2")), "is open")
	require.NoError(t, f.Close())
	require.NoError(t, d.Replace(path, []byte("2")))
	require.ErrorContains(t, d.Replace(filepath.Join(dir, "File"), []byte("3")), "File is file")
}

func TestSplit_Case(t *testing.T) {
	r := openTemp(t, 0)
	require.NoError(t, r.WriteTrajectories("Val", 0, nil))
	for _, split := range []string{"val", "VAL", "Train"} {
		err := r.WriteTrajectories(split, 0, nil)
		require.ErrorIs(t, err, art.ErrInvalid, split)
		require.ErrorContains(t, err, "only in capitals")
	}
	require.NoError(t, r.WriteTrajectories("Val", 0, nil))
}

func TestIsWindowsName(t *testing.T) {
	for name, want := range map[string]bool{
		"player-1": true, "console": true, "null.1": true, "model.v2": true, "Żółw": true,
		"a:b": false, "CON": false, "nul.txt": false, "Lpt1": false, "v1.": false, "what?": false, `"a"`: false, "a|b": false,
	} {
		require.Equal(t, want, isWindowsName(name), name)
	}
}
