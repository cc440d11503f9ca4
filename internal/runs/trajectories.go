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
		add := stored
		if _, trained := r.Latest(); !trained || split != trainSplit || r.uncommitted(split, step) {
			add = nil
		}
		content, err := merge(op, path, groups, add, true)
		if err != nil || stored != nil && bytes.Equal(content, stored) {
			return err
		}
		return storage(op, r.writeTrajectories(split, step, content), "")
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

// eachFile calls do with each file of trajectories, until it returns an error.
func (r *Run) eachFile(do func(split string, step int) error) error {
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
			name, isFile := strings.CutSuffix(e.Name(), parquetSuffix)
			step, ok := parseStep(name)
			if !isFile || !ok {
				continue
			}
			if err := do(split, step); err != nil {
				return err
			}
		}
	}
	return nil
}

// recoverFile removes a file of trajectories of an update that was not committed. That of a later step, which no
// interruption explains, is renamed.
func (r *Run) recoverFile(split string, step int) error {
	newest, path := r.newest(), r.trajectoryPath(split, step)
	if step <= newest && !r.uncommitted(split, step) {
		if err := checkTail(path); err != nil {
			r.missTrajectories(split, step, err)
		}
		return nil
	}
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

// merge returns a trajectory file of groups and of those in the file at path, whose content may be nil. One of the two
// comes first, and of the other follow those groups whose encoding differs from all of it. In the usual case both are
// equal, and are only compared.
func merge(op, path string, groups []*art.TrajectoryGroup, file []byte, fileFirst bool) ([]byte, error) {
	content, err := encodeGroups(groups)
	if err != nil {
		return nil, invalid(op, err)
	}
	if file == nil || bytes.Equal(content, file) {
		return content, nil
	}
	first := groups
	others, err := decodeGroups(file)
	if err != nil {
		return nil, damagedFile(op, path, err)
	}
	if fileFirst {
		first, others = others, first
	}
	var all []*art.TrajectoryGroup
	known := map[string]bool{}
	for i, g := range slices.Concat(first, others) {
		one, err := encodeGroups([]*art.TrajectoryGroup{g})
		if err != nil {
			return nil, invalid(op, err)
		}
		if i < len(first) {
			known[string(one)] = true
		} else if known[string(one)] {
			continue
		}
		all = append(all, g)
	}
	if content, err = encodeGroups(all); err != nil {
		return nil, invalid(op, err)
	}
	return content, nil
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
