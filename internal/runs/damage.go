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

// Damage is what [Open] found missing or changed that the run can go on without.
type Damage struct {
	// History is set when history.jsonl is not what was written: emptied, cut, deleted or edited.
	History bool
	// Rows are the steps whose update has no row of split "train".
	Rows []int
	// Trajectories are files that are missing, or not whole, by their path within the folder of trajectories. Their
	// content is verified when they are read.
	Trajectories []string
	// Checkpoints are steps before the newest whose checkpoint is damaged.
	Checkpoints []int
}

// Damage returns what Open found.
func (r *Run) Damage() Damage { return r.damage }

// checkOlder looks at the checkpoints before the newest, which nothing reads on the way. It costs a look at each file,
// not its content: see inspect.
func (r *Run) checkOlder() {
	steps := r.Steps()
	for _, step := range steps[:max(0, len(steps)-1)] {
		if err := inspect(r.checkpointDir(step)); err != nil {
			r.damage.Checkpoints = append(r.damage.Checkpoints, step)
			r.log.Warn("an older checkpoint is damaged: the run goes on, but this step cannot be continued from or kept as "+
				"the best one; restore it from a backup, or delete its folder", "step", step, "err", err)
		}
	}
}

// inspect compares the sizes of a checkpoint's files with its manifest. A file that was changed after the manifest was
// written is compared by content, and so is the rest of the checkpoint then; when it is whole, as after a copy that did
// not keep the times, the manifest gets a time that spares this the next time.
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
	_ = os.Chtimes(path, time.Time{}, newest) // what may fail only costs time
	return nil
}

// checkFile notes a trajectory file that is not whole.
func (r *Run) checkFile(split string, step int) {
	if err := checkTail(r.trajectoryPath(split, step)); err != nil {
		r.missTrajectories(split, step, err)
	}
}

// checkTail looks at the end of a Parquet file.
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

// checkUpdates makes sure that each committed update has its row, and the trajectories that its row tells of.
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

// ranges writes ascending numbers in short: 0-3, 5.
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
		parts, steps = append(parts, part), slices.Clone(steps[n:])
	}
	return strings.Join(parts, ", ")
}
