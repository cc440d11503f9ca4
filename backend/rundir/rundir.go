// Package rundir reads run directories: what is stored of each run, without loading a model, and without the lock, so
// that a run may be looked at while it is trained.
//
//	all, err := rundir.List(".art")
//	for _, run := range all {
//		rows, err := run.History()
//		steps, err := run.Steps()
//		step, err := art.BestStep(rows, steps, "val/reward")
//	}
//
// What an update has written that is not committed yet is left out. Nothing is changed. The layout of the files is
// described in docs/design.md; the trajectories are Parquet, which DuckDB and pandas read too.
package rundir

import (
	"errors"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/runs"
)

// Description is what a run was begun with. It does not change, but for Base of a model behind an API.
type Description struct {
	Name    string   `json:"name"`
	Project string   `json:"project"`
	Base    string   `json:"base"`             // as it was given
	Commit  string   `json:"commit,omitempty"` // of a base from the hub
	SHA256  string   `json:"sha256,omitempty"` // of a base that is a file, or the built-in model
	Frozen  bool     `json:"frozen"`
	LoRA    art.LoRA `json:"lora"`
	// Adapter is the folder of the adapter from which the run started, instead of LoRA, and AdapterSHA256 the digest of
	// its values.
	Adapter       string `json:"adapter,omitempty"`
	AdapterSHA256 string `json:"adapter_sha256,omitempty"`
	// Fork is the step of another run from which the run started, instead of LoRA: as it was given.
	Fork string `json:"fork,omitempty"`
	// Full says that all weights are trained, and not an adapter.
	Full bool   `json:"full,omitempty"`
	Seed uint64 `json:"seed"`
	// Device is where the run was started. Results are bit-identical on the same kind of device only.
	Device string `json:"device"`
	// Weights is the type of the base's matrices with which the run was started. Runs before v0.1.0 may lack it, which is
	// float32, and those of models elsewhere do.
	Weights string `json:"weights,omitempty"`
	// Activations is the type in which activations are multiplied by quantized matrices; "" is float32.
	Activations string `json:"activations,omitempty"`
	// RopeContext is the context, in tokens, that RoPE has its frequencies for, where a model has others for others; see
	// [model.Config.WithContext]. 0: they depend on nothing.
	RopeContext int `json:"rope_context,omitempty"`
}

// Run is a stored run. Each call reads what is stored then.
type Run struct {
	reader *runs.Reader
	about  Description
}

// Open opens the folder of a run, ROOT/PROJECT/models/NAME. One that is none is an error that wraps
// [io/fs.ErrNotExist]; one in the layout of another version wraps [art.ErrUnsupported].
func Open(dir string) (*Run, error) {
	reader, err := runs.NewReader(dir)
	if err != nil {
		return nil, err
	}
	r := &Run{reader: reader}
	if err := reader.Model(&r.about); err != nil {
		return nil, err
	}
	return r, nil
}

// List opens all runs below a root, in the order of project and name. A root that does not exist has none. Runs that
// cannot be opened are left out, and are what the error tells of.
func List(root string) ([]*Run, error) {
	dirs, err := runs.List(root)
	if err != nil {
		return nil, err
	}
	var list []*Run
	var bad []error
	for _, dir := range dirs {
		r, err := Open(dir)
		if err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", dir, err))
			continue
		}
		list = append(list, r)
	}
	return list, errors.Join(bad...)
}

// Find opens a run below a root by its name, [PROJECT/]NAME[@STEP|@best], and returns the step: the newest when none is
// named, and the one with the highest val/reward for "best". The default project is "default"; a name that only one
// project has needs none.
func Find(root, name string) (r *Run, step int, err error) {
	ref, err := runs.ParseReference(name, "")
	if err != nil {
		return nil, 0, err
	}
	if ref.Project == "" {
		if ref.Project, err = projectOf(root, ref.Name); err != nil {
			return nil, 0, err
		}
	}
	if r, err = Open(ref.Dir(root)); err != nil {
		return nil, 0, err
	}
	step, err = r.reader.Resolve(ref.Step)
	return r, step, err
}

// projectOf returns the project of a run that is named alone.
func projectOf(root, name string) (string, error) {
	dirs, err := runs.List(root)
	if err != nil {
		return "", err
	}
	var projects []string
	for _, dir := range dirs {
		if ref := runs.ReferenceOf(dir); ref.Name == name {
			projects = append(projects, ref.Project)
		}
	}
	if len(projects) > 1 {
		err := fmt.Errorf("%w: several projects have a run %q: %q", art.ErrInvalid, name, projects)
		return "", &art.Error{Op: "find run", Err: err, Hint: "write it as PROJECT/NAME"}
	}
	if len(projects) == 1 {
		return projects[0], nil
	}
	return "default", nil
}

// Dir returns the folder of the run.
func (r *Run) Dir() string { return r.reader.Dir() }

// About returns what the run was begun with.
func (r *Run) About() Description { return r.about }

// Steps returns the steps that have a checkpoint, in ascending order.
func (r *Run) Steps() ([]int, error) { return r.reader.Steps() }

// Checkpoint returns the folder of a stored step: a LoRA adapter in the form of PEFT, with the state of the optimizer.
// Its files are verified; damage is an error that wraps [art.ErrCorrupt].
func (r *Run) Checkpoint(step int) (dir string, err error) { return r.reader.Checkpoint(step) }

// History returns the logged rows, in the order in which they were first logged.
func (r *Run) History() ([]art.HistoryRow, error) { return r.reader.History() }

// Trajectories returns, for each split, the steps that have stored trajectories, in ascending order.
func (r *Run) Trajectories() (map[string][]int, error) { return r.reader.Trajectories() }

// ReadTrajectories returns the trajectories of (split, step) as they were, token ids and logprobs included. None stored
// is an error that wraps [io/fs.ErrNotExist].
func (r *Run) ReadTrajectories(split string, step int) ([]*art.TrajectoryGroup, error) {
	return r.reader.ReadTrajectories(split, step)
}

// Entry is what the index of trajectories says of one of them: everything but what was said.
type Entry = runs.Entry

// Index returns an entry for each trajectory of (split, step), in order. Only a few columns are read, without the
// checksum of the file: 100,000 trajectories take a fraction of a second. None stored is an error that wraps
// [io/fs.ErrNotExist].
func (r *Run) Index(split string, step int) ([]Entry, error) { return r.reader.Index(split, step) }

// Texts calls yield with what was said in each trajectory of (split, step), in order, until it returns false: the
// messages of the first history, without samples.
func (r *Run) Texts(split string, step int, yield func(group, trajectory int, messages []art.Message) bool) error {
	return r.reader.Texts(split, step, yield)
}

// ReadGroup returns one group of (split, step), by its index, with all that is stored of it, and reads little else.
// A group that there is not is an error that wraps [art.ErrInvalid].
func (r *Run) ReadGroup(split string, step, group int) (*art.TrajectoryGroup, error) {
	return r.reader.ReadGroup(split, step, group)
}

// State reads what [art.Model.SaveState] has stored into v, a pointer. It returns false when there is none.
func (r *Run) State(v any) (bool, error) { return r.reader.State(v) }
