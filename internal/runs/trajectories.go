package runs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goart-dev/art"
)

const parquetSuffix = ".parquet"

// WriteTrajectories stores groups as the trajectories of (split, step), on disk when it returns. A second call for the
// same pair replaces them, except for a committed update: groups of split "train" that are not stored yet are added to
// its own. step is at most that of the newest checkpoint, 0 without one.
//
// What [Run.ReadTrajectories] returns is deeply equal to groups, with two exceptions: a time with a monotonic clock
// reading or a location other than UTC keeps only the instant and the offset; and no groups are read as nil.
// Metadata values other than string, bool, int, float64 and nil are an error that wraps [art.ErrInvalid].
func (r *Run) WriteTrajectories(split string, step int, groups []*art.TrajectoryGroup) error {
	const op = "write trajectories"
	return r.record(op, func() error {
		if err := errors.Join(checkName("split", split), r.checkSplit(split), r.checkStep(step)); err != nil {
			return invalid(op, err)
		}
		path := r.trajectoryPath(split, step)
		stored, err := readIfThere(path)
		if err != nil {
			return storage(op, err, "")
		}
		var content []byte
		if _, trained := r.Latest(); trained && split == trainSplit && !r.uncommitted(split, step) {
			content, err = addGroups(stored, groups)
		} else {
			content, err = encodeGroups(groups)
		}
		if err != nil {
			return groupsError(op, path, err)
		}
		if stored != nil && bytes.Equal(content, stored) {
			return nil
		}
		if err := r.writeTrajectories(split, step, content); err != nil {
			return storage(op, err, "")
		}
		return nil
	})
}

// writeTrajectories replaces the file of (split, step).
func (r *Run) writeTrajectories(split string, step int, content []byte) error {
	if err := r.disk.Mkdir(r.splitDir(split)); err != nil {
		return err
	}
	return r.disk.Replace(r.trajectoryPath(split, step), content)
}

// readIfThere reads a file, and returns nil if there is none.
func readIfThere(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// ReadTrajectories returns what was written for (split, step). Nothing written is an error that wraps [fs.ErrNotExist],
// a damaged file one that wraps [art.ErrCorrupt].
func (r *Run) ReadTrajectories(split string, step int) ([]*art.TrajectoryGroup, error) {
	const op = "read trajectories"
	if err := checkName("split", split); err != nil {
		return nil, invalid(op, err)
	}
	path := r.trajectoryPath(split, step)
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, storage(op, err, "")
	}
	groups, err := decodeGroups(content)
	if err != nil {
		return nil, damagedFile(op, path, err)
	}
	return groups, nil
}

func damagedFile(op, path string, err error) error {
	return corrupt(op, fmt.Errorf("%s: %w", path, err), "restore the file from a backup, or move it away")
}

func (r *Run) splitDir(split string) string { return filepath.Join(r.trajectories(), split) }

// splits returns the names of the folders of trajectories.
func (r *Run) splits() ([]string, error) {
	entries, err := os.ReadDir(r.trajectories())
	if err != nil {
		return nil, err
	}
	var splits []string
	for _, e := range entries {
		if e.IsDir() && checkName("split", e.Name()) == nil {
			splits = append(splits, e.Name())
		}
	}
	return splits, nil
}

// recoverTrajectories removes the files of an update that was not committed. Files of later steps, which no
// interruption explains, are renamed.
func (r *Run) recoverTrajectories() error {
	splits, err := r.splits()
	if err != nil {
		return err
	}
	for _, split := range splits {
		entries, err := os.ReadDir(r.splitDir(split))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := r.recoverFile(split, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// stepOfFile returns the step of a file of trajectories.
func stepOfFile(file string) (step int, ok bool) {
	name, ok := strings.CutSuffix(file, parquetSuffix)
	if !ok {
		return 0, false
	}
	return parseStep(name)
}

func (r *Run) recoverFile(split string, e fs.DirEntry) error {
	step, ok := stepOfFile(e.Name())
	newest := r.newest()
	if !ok {
		return nil
	}
	if step <= newest && !r.uncommitted(split, step) {
		r.checkFile(split, step)
		return nil
	}
	path := filepath.Join(r.splitDir(split), e.Name())
	if step == newest {
		r.log.Info("dropped the trajectories of an update that was not committed", "split", split, "step", step)
		r.recovered.Files++
		return r.discard(path)
	}
	r.log.Warn("moved trajectories aside: checkpoints are missing", "split", split, "step", step, "newest", newest)
	r.recovered.Aside++
	if err := r.disk.Rename(path, path+".aside"); err != nil {
		return err
	}
	return r.disk.SyncDir(r.splitDir(split))
}

// errStored is an error about stored trajectories, not the given ones.
type errStored struct{ error }

// Unwrap returns the cause.
func (e errStored) Unwrap() error { return e.error }

// groupsError is the error of putFirst or addGroups, for a file.
func groupsError(op, path string, err error) error {
	if stored := (errStored{}); errors.As(err, &stored) {
		return damagedFile(op, path, stored.error)
	}
	return invalid(op, err)
}

// putFirst returns a trajectory file of groups, followed by those of a file that are not among them. No groups and no
// file are nil.
func putFirst(groups []*art.TrajectoryGroup, file []byte) ([]byte, error) {
	if len(groups) == 0 {
		return file, nil
	}
	return merge(groups, file, union)
}

// addGroups returns a trajectory file of the groups of a file, followed by those that are not among them.
func addGroups(file []byte, groups []*art.TrajectoryGroup) ([]byte, error) {
	return merge(groups, file, func(given, stored []*art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) {
		return union(stored, given)
	})
}

// combiner combines given and stored groups to one list.
type combiner func(given, stored []*art.TrajectoryGroup) ([]*art.TrajectoryGroup, error)

// merge encodes groups and those of a file, which may be nil, as combine has combined them. In the usual case both are
// equal, and are only compared.
func merge(groups []*art.TrajectoryGroup, file []byte, combine combiner) ([]byte, error) {
	content, err := encodeGroups(groups)
	if err != nil || file == nil || bytes.Equal(content, file) {
		return content, err
	}
	stored, err := decodeGroups(file)
	if err != nil {
		return nil, errStored{err}
	}
	if groups, err = combine(groups, stored); err != nil {
		return nil, err
	}
	return encodeGroups(groups)
}

// union returns a, and those groups of b whose encoding differs from all of a.
func union(a, b []*art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) {
	known := map[string]bool{}
	for _, g := range a {
		content, err := encodeGroups([]*art.TrajectoryGroup{g})
		if err != nil {
			return nil, err
		}
		known[string(content)] = true
	}
	all := slices.Clone(a)
	for _, g := range b {
		content, err := encodeGroups([]*art.TrajectoryGroup{g})
		if err != nil {
			return nil, err
		}
		if !known[string(content)] {
			all = append(all, g)
		}
	}
	return all, nil
}

// Present leaves out groups and trajectories that are nil. It changes none of them, and copies only what it has to.
func Present(groups []*art.TrajectoryGroup) []*art.TrajectoryGroup {
	var out []*art.TrajectoryGroup
	for _, g := range groups {
		if g == nil {
			continue
		}
		if slices.Contains(g.Trajectories, nil) {
			copied := *g
			copied.Trajectories = slices.DeleteFunc(slices.Clone(g.Trajectories),
				func(t *art.Trajectory) bool { return t == nil })
			g = &copied
		}
		out = append(out, g)
	}
	return out
}
