package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// recover brings the directory to its newest committed step.
func (r *Run) recover() error {
	for _, check := range []func() error{r.checkHistoryFormat, r.recoverCheckpoints, r.checkOlder} {
		if err := check(); err != nil {
			return err
		}
	}
	// Those that free space come first.
	trajectories := func() error { return r.eachFile(r.recoverFile) }
	for _, clean := range []func() error{r.removeTemporary, trajectories, r.recoverHistory} {
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

// Damage is what [Open] found missing or changed, without preventing the run from continuing.
type Damage struct {
	// History is set when history.jsonl differs from what was written: it was emptied, truncated, deleted or edited.
	History bool
	// Rows are the steps whose update has no row of split "train".
	Rows []int
	// Trajectories are files that are missing or truncated, by their path within the folder of trajectories. Their content
	// is verified when they are read.
	Trajectories []string
	// Checkpoints are steps before the newest whose checkpoint is damaged.
	Checkpoints []int
}

// Damage returns what Open found.
func (r *Run) Damage() Damage { return r.damage }

// checkOlder checks the checkpoints before the newest, which nothing else reads. It does not read their files: see
// inspect. Only the format of a newer version is an error.
func (r *Run) checkOlder() error {
	steps := r.Steps()
	for _, step := range steps[:max(0, len(steps)-1)] {
		err := inspect(r.checkpointDir(step))
		if isNewer(err) {
			return corrupt("open run", err, "")
		}
		if err != nil {
			r.damage.Checkpoints = append(r.damage.Checkpoints, step)
			r.log.Warn("an older checkpoint is damaged: the run goes on, but this step cannot be continued from or kept as "+
				"the best one; restore it from a backup, or delete its folder", "step", step, "err", err)
		}
	}
	return nil
}

// inspect compares the sizes of a checkpoint's files with its manifest. If a file was changed after the manifest was
// written, all files are compared by content. If they are intact, as after a copy that did not preserve times, the time
// of the manifest is updated, so that the next inspection is cheap again.
func inspect(dir string) error {
	path := filepath.Join(dir, manifestName)
	m, err := readManifest(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	newest := info.ModTime()
	for name, want := range m.Files {
		file, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if file.Size() != want.Size {
			return fmt.Errorf("%s has %d bytes of %d", filepath.Join(dir, name), file.Size(), want.Size)
		}
		if file.ModTime().After(newest) {
			newest = file.ModTime()
		}
	}
	if newest.Equal(info.ModTime()) {
		return nil
	}
	if err := verify(dir); err != nil {
		return err
	}
	_ = os.Chtimes(path, time.Time{}, newest) // a failure only costs time
	return nil
}

// checkTail checks the end of a Parquet file.
func checkTail(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	tail := make([]byte, min(tailBytes, info.Size()))
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		return err
	}
	_, err = footerSize(tail, info.Size())
	return err
}

func (r *Run) missTrajectories(split string, step int, err error) {
	r.damage.Trajectories = append(r.damage.Trajectories, split+"/"+stepName(step)+parquetSuffix)
	r.log.Warn("trajectories are missing or damaged: the run goes on, but they cannot be read or trained on again; "+
		"restore the file from a backup", "split", split, "step", step, "err", err)
}

// checkUpdates checks that each committed update has its row, and its trajectories if the row counts groups.
func (r *Run) checkUpdates() {
	rows := map[int]historyRow{}
	for _, row := range r.history.rows {
		if row.Split == trainSplit {
			rows[row.Step] = row
		}
	}
	for step := range r.newest() {
		row, ok := rows[step]
		if !ok {
			r.damage.Rows = append(r.damage.Rows, step)
			continue
		}
		if _, err := os.Stat(r.trajectoryPath(trainSplit, step)); row.groups > 0 && errors.Is(err, fs.ErrNotExist) {
			r.missTrajectories(trainSplit, step, err)
		}
	}
	if len(r.damage.Rows) > 0 {
		r.log.Warn("history.jsonl has no train row of some steps: the rewards and metrics of these updates are lost. "+
			"The checkpoints are not affected, and the run goes on", "steps", ranges(r.damage.Rows))
	}
}

// ranges abbreviates ascending numbers: 0-3, 5.
func ranges(steps []int) string {
	var parts []string
	for len(steps) > 0 {
		n := 1
		for n < len(steps) && steps[n] == steps[0]+n {
			n++
		}
		part := fmt.Sprint(steps[0])
		if n > 1 {
			part = fmt.Sprintf("%d-%d", steps[0], steps[n-1])
		}
		parts, steps = append(parts, part), steps[n:]
	}
	return strings.Join(parts, ", ")
}
