package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// recover brings the directory to its newest committed step.
func (r *Run) recover() error {
	for _, check := range []func() error{r.checkHistoryFormat, r.recoverCheckpoints, r.checkOlder} {
		if err := check(); err != nil {
			return err
		}
	}
	// Those that free space come first.
	for _, clean := range []func() error{r.removeTemporary, r.recoverTrajectories, r.recoverHistory} {
		if err := clean(); err != nil {
			return storage("open run", err, "nothing that was committed is lost: fix this and open the run again")
		}
	}
	r.checkUpdates()
	return nil
}

// temp is the name of path before it is renamed into place, and while it is being deleted.
func (r *Run) temp(path string) string {
	return filepath.Join(filepath.Dir(path), tempPrefix+filepath.Base(path))
}

// discard deletes a file or folder atomically: it is renamed first.
func (r *Run) discard(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	temp := r.temp(path)
	if err := r.disk.RemoveAll(temp); err != nil {
		return err
	}
	if err := r.disk.Rename(path, temp); err != nil {
		return err
	}
	if err := r.disk.SyncDir(filepath.Dir(path)); err != nil {
		return err
	}
	return r.disk.RemoveAll(temp)
}

// recoverCheckpoints lists the checkpoints and verifies the newest one.
func (r *Run) recoverCheckpoints() error {
	var err error
	if r.steps, err = r.listSteps(); err != nil {
		return storage("open run", err, "")
	}
	latest, ok := r.Latest()
	if !ok {
		return nil
	}
	if err := verify(r.checkpointDir(latest)); err != nil {
		return corrupt("open run", err, r.advice())
	}
	return nil
}

// listSteps returns the steps that have a folder, in ascending order.
func (r *Run) listSteps() (steps []int, err error) {
	entries, err := os.ReadDir(r.checkpoints())
	for _, e := range entries {
		if step, ok := parseStep(e.Name()); ok && e.IsDir() {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps, err
}

// advice returns the hint for a damaged newest checkpoint.
func (r *Run) advice() string {
	latest := r.steps[len(r.steps)-1]
	damaged := r.checkpointDir(latest)
	for i, step := range slices.Backward(r.steps[:len(r.steps)-1]) {
		if verify(r.checkpointDir(step)) != nil {
			continue
		}
		return fmt.Sprintf("nothing was deleted. Restore %s from a backup; or, to continue from step %d, which is intact, "+
			"move the %d newer folder(s) away from %s", damaged, step, len(r.steps)-1-i, r.checkpoints())
	}
	return fmt.Sprintf("nothing was deleted. Restore %s from a backup; no other checkpoint is intact", damaged)
}

// newest is the step that the run is at: that of the newest checkpoint, 0 without one.
func (r *Run) newest() int {
	latest, _ := r.Latest()
	return latest
}

// uncommitted reports whether the row and the trajectories of (split, step) belong to an update that no checkpoint has
// committed: the update from the newest step to the next. A run without checkpoints is never updated, and keeps all
// rows.
func (r *Run) uncommitted(split string, step int) bool {
	latest, ok := r.Latest()
	return ok && split == trainSplit && step >= latest
}

// removeTemporary removes what was not renamed into place.
func (r *Run) removeTemporary() error {
	splits, err := r.splits()
	if err != nil {
		return err
	}
	folders := []string{r.dir, r.checkpoints()}
	for _, split := range splits {
		folders = append(folders, r.splitDir(split))
	}
	if _, err := os.Stat(r.weights()); err == nil {
		folders = append(folders, r.weights())
	}
	for _, dir := range folders {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), tempPrefix) {
				continue
			}
			path := filepath.Join(dir, e.Name())
			if err := r.disk.RemoveAll(path); err != nil {
				return err
			}
			r.recovered.Temporary++
			r.log.Info("removed what an interrupted change left", "path", path)
		}
	}
	return nil
}
