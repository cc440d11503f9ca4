package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goart-dev/art"
)

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
		if err := r.saveWeights(final, write); err != nil {
			return storage(op, err, "nothing was stored")
		}
		return nil
	})
}

func (r *Run) saveWeights(final string, write func(dir string) error) error {
	if _, err := os.Lstat(r.weights()); errors.Is(err, fs.ErrNotExist) {
		if err := r.disk.Mkdir(r.weights()); err != nil {
			return err
		}
		if err := r.disk.SyncDir(r.dir); err != nil {
			return err
		}
	}
	temp := r.temp(final)
	if err := r.disk.RemoveAll(temp); err != nil {
		return err
	}
	if err := r.stage(temp, write); err != nil {
		return errors.Join(err, r.disk.RemoveAll(temp))
	}
	if err := r.disk.Rename(temp, final); err != nil {
		return errors.Join(err, r.disk.RemoveAll(temp))
	}
	if err := r.disk.SyncDir(r.weights()); err != nil {
		return errors.Join(err, r.discard(final))
	}
	return nil
}

// SavedWeights lists what [Run.SaveWeights] has stored, the oldest first.
func (r *Run) SavedWeights() ([]SavedWeights, error) {
	entries, err := os.ReadDir(r.weights())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, storage("list weights", err, "")
	}
	type aged struct {
		SavedWeights
		time int64
	}
	var list []aged
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || strings.HasPrefix(e.Name(), tempPrefix) {
			continue // deleted meanwhile, or being written
		}
		list = append(list, aged{SavedWeights{e.Name(), folderBytes(filepath.Join(r.weights(), e.Name()))},
			info.ModTime().UnixNano()})
	}
	slices.SortStableFunc(list, func(a, b aged) int { return int(min(1, max(-1, a.time-b.time))) })
	var out []SavedWeights
	for _, w := range list {
		out = append(out, w.SavedWeights)
	}
	return out, nil
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
		if err := r.discard(dir); err != nil {
			return storage(op, err, "")
		}
		return nil
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
