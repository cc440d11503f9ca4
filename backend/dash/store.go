package dash

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/runs"
)

// maxEntries bounds the entries of indices that are kept: about 150 bytes each.
const maxEntries = 1_000_000

// store reads runs, and keeps what it has read for as long as the files stay the same.
type store struct {
	root string

	mu      sync.Mutex
	runs    map[string]*run       // by name
	indices map[indexKey]*index   // of trajectory files
	recent  []indexKey            // of indices, the least recently used first
	entries int                   // in all indices
	hashes  map[indexKey][]uint64 // of the prompts of groups, see [store.prompts]
}

// run is what is known of a run at one time.
type run struct {
	*rundir.Run
	name    string // PROJECT/NAME
	version string // of its files
	stored  time.Time
	rows    []art.HistoryRow
	steps   []int
	splits  map[string][]int // steps that have trajectories
}

// isMissing reports whether something does not exist.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// list returns all runs, those that were stored last first, and what is wrong with others.
func (s *store) list() ([]*run, error) {
	dirs, err := runs.List(s.root)
	if err != nil {
		return nil, err
	}
	var list []*run
	var bad []error
	for _, dir := range dirs {
		r, err := s.load(runs.ReferenceOf(dir).String(), dir)
		if err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", filepath.Base(dir), err))
			continue
		}
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(a, b *run) int { return b.stored.Compare(a.stored) })
	return list, errors.Join(bad...)
}

// find returns a run by its name, PROJECT/NAME. The name is checked: it cannot leave the folder.
func (s *store) find(name string) (*run, error) {
	ref, err := runs.ParseReference(name, "")
	if err != nil || ref.Project == "" || ref.Step != "" {
		return nil, badRequest("%q does not name a run: want PROJECT/NAME", name)
	}
	r, err := s.load(ref.String(), ref.Dir(s.root))
	if isMissing(err) {
		return nil, notFound("there is no run %s", name)
	}
	return r, err
}

// load reads a run, unless nothing has changed.
func (s *store) load(name, dir string) (*run, error) {
	version, stored := versionOf(dir)
	s.mu.Lock()
	known := s.runs[name]
	s.mu.Unlock()
	if known != nil && known.version == version {
		return known, nil
	}
	opened, err := rundir.Open(dir)
	if err != nil {
		return nil, err
	}
	r := &run{Run: opened, name: name, version: version, stored: stored}
	if r.rows, err = opened.History(); err != nil {
		return nil, err
	}
	if r.steps, err = opened.Steps(); err != nil {
		return nil, err
	}
	if r.splits, err = opened.Trajectories(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[name] = r
	return r, nil
}

// versionOf tells states of a run apart, and returns when it was last stored to.
func versionOf(dir string) (version string, stored time.Time) {
	paths := []string{"model.json", "history.jsonl", "checkpoints", "trajectories", starsName}
	splits, _ := filepath.Glob(filepath.Join(dir, "trajectories", "*")) // a run without any has none
	for _, split := range splits {
		paths = append(paths, filepath.Join("trajectories", filepath.Base(split)))
	}
	for _, path := range paths {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			continue
		}
		size := info.Size()
		if info.IsDir() {
			size = 0
		}
		version += fmt.Sprintf("%x.%x ", info.ModTime().UnixNano(), size)
		if info.ModTime().After(stored) && path != starsName { // a star is no sign that the run trains
			stored = info.ModTime()
		}
	}
	return version, stored
}

// step returns the newest step.
func (r *run) step() int {
	if len(r.steps) == 0 {
		return 0
	}
	return r.steps[len(r.steps)-1]
}

// newest returns the value of a metric in the last row that has it.
func (r *run) newest(key string) (value float64, ok bool) {
	for _, row := range slices.Backward(r.rows) {
		if value, ok := row.Metrics[key]; ok {
			return value, true
		}
	}
	return 0, false
}

// isActive reports whether something was stored so recently that the run is probably being trained: within two minutes,
// or within four steps of it.
func (r *run) isActive(now time.Time) bool {
	patience := 2 * time.Minute
	if wall, ok := r.newest("time/step_wall_s"); ok && wall < 1e6 {
		patience = max(patience, time.Duration(4*wall*float64(time.Second)))
	}
	return now.Sub(r.stored).Abs() < patience // what was stored in the future was stored before the clock was set
}

// indexKey names a state of a trajectory file.
type indexKey struct {
	path       string
	time, size int64
}

// index is the index of a trajectory file, with its groups.
type index struct {
	entries []rundir.Entry
	groups  []groupEntry
}

// groupEntry is a group in an index.
type groupEntry struct {
	number   int
	entries  []rundir.Entry // of its trajectories
	failures []art.Failure
}

// rewards returns the rewards of a group.
func (g *groupEntry) rewards() []float64 {
	list := make([]float64, len(g.entries))
	for i, e := range g.entries {
		list[i] = e.Reward
	}
	return list
}

// keyOf names the state of the file of (split, step).
func keyOf(r *run, split string, step int) (indexKey, error) {
	if !slices.Contains(r.splits[split], step) { // also: split is the name of a folder of the run
		return indexKey{}, notFound("%s has no trajectories of split %q and step %d", r.name, split, step)
	}
	path := filepath.Join(r.Dir(), "trajectories", split, fmt.Sprintf("%04d.parquet", step))
	info, err := os.Stat(path)
	if err != nil {
		return indexKey{}, err
	}
	return indexKey{path, info.ModTime().UnixNano(), info.Size()}, nil
}

// index returns the index of (split, step).
func (s *store) index(r *run, split string, step int) (*index, error) {
	key, err := keyOf(r, split, step)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	known := s.indices[key]
	if known != nil {
		s.recent = append(slices.DeleteFunc(s.recent, func(k indexKey) bool { return k == key }), key)
	}
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	entries, err := r.Index(split, step)
	if err != nil {
		return nil, err
	}
	made := &index{entries: entries}
	for i := 0; i < len(entries); {
		end := i
		for end < len(entries) && entries[end].Group == entries[i].Group {
			end++
		}
		g := groupEntry{number: entries[i].Group, entries: entries[i:end], failures: entries[i].Failures}
		if entries[i].Trajectory < 0 {
			g.entries = nil
		}
		made.groups = append(made.groups, g)
		i = end
	}
	s.keep(key, made)
	return made, nil
}

// keep stores an index, and forgets those that were not used for longest.
func (s *store) keep(key indexKey, made *index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.indices[key] != nil {
		return
	}
	s.indices[key] = made
	s.recent = append(s.recent, key)
	s.entries += len(made.entries)
	for s.entries > maxEntries && len(s.recent) > 1 {
		oldest := s.recent[0]
		s.entries -= len(s.indices[oldest].entries)
		delete(s.indices, oldest)
		s.recent = s.recent[1:]
	}
}
