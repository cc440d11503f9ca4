package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art"
)

// Latest returns the newest step that has a checkpoint; ok is false when there is none.
func (r *Run) Latest() (step int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.steps) == 0 {
		return 0, false
	}
	return r.steps[len(r.steps)-1], true
}

// Steps returns the steps that have a checkpoint, in ascending order.
func (r *Run) Steps() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.steps)
}

// Checkpoint returns the folder of a step; ok is false when it has no checkpoint. What is in it must not be changed.
func (r *Run) Checkpoint(step int) (dir string, ok bool) {
	if !slices.Contains(r.Steps(), step) {
		return "", false
	}
	return r.checkpointDir(step), true
}

// CheckpointBytes is the size of the checkpoint of a step in the folder of a run, 0 of one that there is not.
func CheckpointBytes(run string, step int) int64 {
	return folderBytes(filepath.Join(run, "checkpoints", stepName(step)))
}

func (r *Run) checkpointDir(step int) string { return filepath.Join(r.checkpoints(), stepName(step)) }

// Next returns the step that Commit takes: 0 for a run without checkpoints, then one more than Latest.
func (r *Run) Next() int {
	if latest, ok := r.Latest(); ok {
		return latest + 1
	}
	return 0
}

// Commit stores the checkpoint of step, which must be [Run.Next], alone; [Run.CommitUpdate] is for a step that was
// trained. write puts files and folders into dir, an empty folder; it must not call methods that change the run. When
// Commit returns nil, the step is durable. After an error, which wraps [art.ErrStorage], and after a panic of
// write, which is returned as one, the run is at the previous step.
func (r *Run) Commit(step int, write func(dir string) error) error {
	const op = "commit checkpoint"
	return r.record(op, func() error {
		next := r.Next()
		if step != next {
			return invalid(op, fmt.Errorf("step %d: the next step of this run is %d", step, next))
		}
		if err := r.commit(step, write); err != nil {
			return storage(op, err, fmt.Sprintf("step %d of %s was not stored, the run is as it was before", step, r.dir))
		}
		r.committed(step)
		return nil
	})
}

// committed adds a step that is on disk.
func (r *Run) committed(step int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, step)
}

// commit writes, seals and renames a checkpoint. It removes everything when it fails.
func (r *Run) commit(step int, write func(dir string) error) error {
	final := r.checkpointDir(step)
	if err := r.discard(final); err != nil { // it may exist if an earlier commit failed, and its rollback too
		return err
	}
	return r.install(final, write)
}

// install makes a folder with the files of write, sealed by their checksums. It removes everything when it fails.
func (r *Run) install(final string, write func(dir string) error) error {
	temp := r.temp(final)
	if err := r.disk.RemoveAll(temp); err != nil {
		return err
	}
	err := r.stage(temp, write)
	if err == nil {
		err = r.disk.Rename(temp, final)
	}
	if err != nil {
		return errors.Join(err, r.disk.RemoveAll(temp))
	}
	if err := r.disk.SyncDir(filepath.Dir(final)); err != nil {
		return errors.Join(err, r.discard(final))
	}
	return nil
}

// stage fills dir, fsyncs every file and folder of it, and writes their manifest.
func (r *Run) stage(dir string, write func(dir string) error) error {
	if err := r.disk.Mkdir(dir); err != nil {
		return err
	}
	if err := guard(dir, write); err != nil {
		return err
	}
	if err := r.disk.Write(filepath.Join(dir, modelName), os.O_EXCL, r.model); err != nil {
		return err
	}
	files, folders, err := r.syncFiles(dir)
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(manifest{checkpointFormat, files}, "", "  ")
	if err != nil {
		return err
	}
	if err := r.disk.Write(filepath.Join(dir, manifestName), os.O_EXCL, append(content, '\n')); err != nil {
		return err
	}
	for _, folder := range slices.Backward(folders) { // the deepest first
		if err := r.disk.SyncDir(folder); err != nil {
			return err
		}
	}
	return nil
}

// guard calls write and returns its panic as an error.
func guard(dir string, write func(dir string) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return write(dir)
}

// DeleteCheckpoints deletes the checkpoints of all steps but those to keep and the newest one, which is never deleted.
// History and trajectories stay. If one of those to keep is damaged, nothing is deleted, and the error wraps
// [art.ErrCorrupt].
func (r *Run) DeleteCheckpoints(keep []int) error {
	const op = "delete checkpoints"
	return r.change(op, func() error {
		var kept, others []int
		for _, step := range r.Steps() {
			if step == r.newest() || slices.Contains(keep, step) {
				kept = append(kept, step)
			} else {
				others = append(others, step)
			}
		}
		if len(others) == 0 {
			return nil
		}
		for _, step := range kept {
			if r.verified[step] { // since then nothing has changed in it
				continue
			}
			if err := verify(r.checkpointDir(step)); err != nil {
				return corrupt(op, err, fmt.Sprintf("nothing was deleted: step %d is to be kept. Restore %s from a "+
					"backup, or move it away to keep another step", step, r.checkpointDir(step)))
			}
			r.verified[step] = true
		}
		for _, step := range others {
			if err := r.discard(r.checkpointDir(step)); err != nil {
				return storage(op, err, fmt.Sprintf("step %d and later ones were not deleted", step))
			}
			r.mu.Lock()
			r.steps = slices.DeleteFunc(r.steps, func(s int) bool { return s == step })
			r.mu.Unlock()
		}
		return nil
	})
}

// CopyCheckpoint returns what [Run.Commit] writes when a step is the same as that in the folder of another checkpoint,
// of this run or another one, without some of its files. Files become hard links where the file system has them, so
// that weights that did not change take no more room; files of a checkpoint are never written again.
func CopyCheckpoint(from string, without ...string) func(dir string) error {
	return func(dir string) error {
		return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
			name, relErr := filepath.Rel(from, path)
			switch {
			case err != nil || relErr != nil:
				return errors.Join(err, relErr)
			case name == ".":
				return nil
			case slices.Contains([]string{modelName, manifestName, UpdateFile}, name) || slices.Contains(without, name):
				return nil // the former are written with each commit, or about the update to that step
			case entry.IsDir():
				return os.Mkdir(filepath.Join(dir, name), 0o755)
			}
			to := filepath.Join(dir, name)
			if os.Link(path, to) == nil {
				return nil
			}
			in, err := os.Open(path) // a copy where there are no links
			if err != nil {
				return err
			}
			defer in.Close()
			out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
			if err != nil {
				return err
			}
			_, err = io.Copy(out, in)
			return errors.Join(err, out.Close())
		})
	}
}

// weightsPrefix begins the step of a [Reference] that names weights which were saved apart from steps.
const weightsPrefix = "weights/"

// SavedWeights describes weights that are stored under a name of their own.
type SavedWeights struct {
	Name  string
	Bytes int64 // of its files
}

func (r *Run) weights() string { return filepath.Join(r.dir, "weights") }

// WeightsReference names saved weights of the run.
func (r *Run) WeightsReference(name string) Reference {
	ref := ReferenceOf(r.dir)
	ref.Step = weightsPrefix + name
	return ref
}

// SaveWeights stores a folder that write fills, as [Run.Commit] does, under a name that is not used yet. Steps are not
// concerned.
func (r *Run) SaveWeights(name string, write func(dir string) error) error {
	const op = "save weights"
	return r.record(op, func() error {
		if err := checkName("weights", name); err != nil {
			return invalid(op, err)
		}
		final := filepath.Join(r.weights(), name)
		if _, err := os.Lstat(final); err == nil {
			return invalid(op, fmt.Errorf("%s is stored already", r.WeightsReference(name)))
		}
		err := r.disk.Mkdir(r.weights())
		if err == nil {
			err = r.install(final, write)
		}
		return storage(op, err, "nothing was stored")
	})
}

// SavedWeights lists what [Run.SaveWeights] has stored, the oldest first.
func (r *Run) SavedWeights() ([]SavedWeights, error) {
	entries, err := os.ReadDir(r.weights())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, storage("list weights", err, "")
	}
	var list []SavedWeights
	made := map[string]time.Time{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || strings.HasPrefix(e.Name(), tempPrefix) {
			continue // deleted meanwhile, or being written
		}
		list = append(list, SavedWeights{e.Name(), folderBytes(filepath.Join(r.weights(), e.Name()))})
		made[e.Name()] = info.ModTime()
	}
	slices.SortStableFunc(list, func(a, b SavedWeights) int { return made[a.Name].Compare(made[b.Name]) })
	return list, nil
}

// folderBytes is the size of the files of a folder.
func folderBytes(dir string) (n int64) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

// WeightsDir returns the folder of saved weights, whose files it verifies.
func (r *Run) WeightsDir(name string) (dir string, err error) {
	const op = "read weights"
	if err := checkName("weights", name); err != nil {
		return "", invalid(op, err)
	}
	dir = filepath.Join(r.weights(), name)
	if _, err := os.Stat(dir); err != nil {
		saved, _ := r.SavedWeights()
		var names []string
		for _, w := range saved {
			names = append(names, w.Name)
		}
		return "", &art.Error{Op: op, Err: fmt.Errorf("%w: there are no weights %q in %s", art.ErrInvalid, name, r.dir),
			Hint: fmt.Sprintf("it has %q", names)}
	}
	if err := verify(dir); err != nil {
		return "", corrupt(op, err, "restore "+dir+" from a backup, or take other weights")
	}
	return dir, nil
}

// DeleteWeights deletes saved weights.
func (r *Run) DeleteWeights(name string) error {
	const op = "delete weights"
	return r.change(op, func() error {
		if err := checkName("weights", name); err != nil {
			return invalid(op, err)
		}
		dir := filepath.Join(r.weights(), name)
		if _, err := os.Stat(dir); err != nil {
			return invalid(op, fmt.Errorf("there are no weights %q in %s", name, r.dir))
		}
		return storage(op, r.discard(dir), "")
	})
}

// Find returns the folder that the step of a [Reference] names: a checkpoint, or saved weights. Its files are verified.
func (r *Reader) Find(step string) (dir string, err error) {
	if name, ok := strings.CutPrefix(step, weightsPrefix); ok {
		return r.run.WeightsDir(name)
	}
	n, err := r.Resolve(step)
	if err != nil {
		return "", err
	}
	return r.Checkpoint(n)
}
