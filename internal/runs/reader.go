package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
)

// Reader reads a run directory without its lock, and changes nothing: the run may be open in another process meanwhile.
// Each call reads what is stored then. What belongs to an update that is not committed is left out.
type Reader struct{ run *Run }

// NewReader returns a reader of a run directory. A folder that is none is an error that wraps [fs.ErrNotExist]; one in
// another layout wraps [art.ErrUnsupported].
func NewReader(dir string) (*Reader, error) {
	const op = "read run"
	r := newRun(dir, nil, disk{})
	if _, err := os.Stat(filepath.Join(dir, modelName)); err != nil {
		if _, other := os.Stat(dir); other == nil {
			err = fmt.Errorf("%s is not a run directory: %w", dir, err)
		}
		return nil, &art.Error{Op: op, Err: err, Hint: "a run is stored in ROOT/PROJECT/models/NAME"}
	}
	if err := r.readLayout(); err != nil {
		return nil, err
	}
	return &Reader{r}, nil
}

// Dir returns the folder of the run.
func (r *Reader) Dir() string { return r.run.dir }

// Model reads model.json into v, a pointer.
func (r *Reader) Model(v any) error {
	_, err := r.run.ReadModel(v)
	return err
}

// State reads the user's state into v, a pointer. It returns false when there is none.
func (r *Reader) State(v any) (bool, error) { return r.run.ReadState(v) }

// Steps returns the steps that have a checkpoint, in ascending order.
func (r *Reader) Steps() ([]int, error) {
	steps, err := r.run.listSteps()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, storage("read run", err, "")
	}
	return steps, nil
}

// Checkpoint returns the folder of a step that has a checkpoint, whose files it verifies.
func (r *Reader) Checkpoint(step int) (dir string, err error) {
	const op = "read checkpoint"
	steps, err := r.Steps()
	if err != nil {
		return "", err
	}
	if !slices.Contains(steps, step) {
		return "", &art.Error{Op: op, Err: fmt.Errorf("%w: %s has no checkpoint of step %d", art.ErrInvalid, r.run.dir, step),
			Hint: "it has " + cmp.Or(ranges(steps), "none")}
	}
	dir = r.run.checkpointDir(step)
	if err := verify(dir); err != nil {
		return "", corrupt(op, err, "restore "+dir+" from a backup, or take another step")
	}
	return dir, nil
}

// History returns the rows of the history, as [Run.History] does.
func (r *Reader) History() ([]art.HistoryRow, error) {
	if err := r.refresh(); err != nil {
		return nil, err
	}
	if err := r.run.checkHistoryFormat(); err != nil {
		return nil, err
	}
	content, err := readIfThere(r.run.historyPath())
	if err != nil {
		return nil, storage("read run", err, "")
	}
	read := r.run.readHistory(content)
	rows := make([]art.HistoryRow, len(read.rows))
	for i, row := range read.rows {
		rows[i] = row.HistoryRow
	}
	return rows, nil
}

// refresh reads which steps there are.
func (r *Reader) refresh() error {
	steps, err := r.Steps()
	r.run.mu.Lock()
	defer r.run.mu.Unlock()
	r.run.steps = steps
	return err
}

// Trajectories returns the steps of each split that have stored trajectories, in ascending order.
func (r *Reader) Trajectories() (map[string][]int, error) {
	if err := r.refresh(); err != nil {
		return nil, err
	}
	out := map[string][]int{}
	err := r.run.eachFile(func(split string, step int) error {
		if step <= r.run.newest() && !r.run.uncommitted(split, step) {
			out[split] = append(out[split], step)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, storage("read run", err, "")
	}
	for _, steps := range out {
		slices.Sort(steps)
	}
	return out, nil
}

// ReadTrajectories returns what is stored for (split, step), see [Run.ReadTrajectories].
func (r *Reader) ReadTrajectories(split string, step int) ([]*art.TrajectoryGroup, error) {
	return r.run.ReadTrajectories(split, step)
}

// List returns the folders of all runs below a root, in the order of project and name. A root that does not exist has
// none.
func List(root string) ([]string, error) {
	literal := strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(root)
	found, err := filepath.Glob(filepath.Join(literal, "*", "models", "*", modelName))
	if err != nil {
		return nil, storage("list runs", err, "")
	}
	dirs := make([]string, len(found))
	for i, path := range found {
		dirs[i] = filepath.Dir(path)
	}
	return dirs, nil
}

// Reference names a run, or one of its steps, or weights that were saved: [PROJECT/]NAME[@STEP|@best|@weights/SAVED].
type Reference struct {
	Project, Name string
	// Step is a number, "best", "weights/SAVED", or "" for the newest.
	Step string
}

// Best is the step of a reference for which "val/reward" is highest.
const Best = "best"

// ParseReference reads a reference. project is used where it names none.
func ParseReference(text, project string) (Reference, error) {
	ref := Reference{Project: project}
	name, step, hasStep := strings.Cut(text, "@")
	if before, after, ok := strings.Cut(name, "/"); ok {
		ref.Project, name = before, after
	}
	ref.Name, ref.Step = name, step
	err := checkName("model", ref.Name)
	if ref.Project != "" || strings.Contains(text, "/") {
		err = errors.Join(checkName("project", ref.Project), err)
	}
	if saved, ok := strings.CutPrefix(step, weightsPrefix); ok {
		err = errors.Join(err, checkName("weights", saved))
	} else if hasStep && step != Best {
		if n, bad := strconv.Atoi(step); bad != nil || n < 0 {
			err = errors.Join(err, fmt.Errorf("step %q is neither a number nor %q", step, Best))
		}
	}
	if err != nil {
		return Reference{}, &art.Error{Op: "find run", Err: fmt.Errorf("%w: %q: %w", art.ErrInvalid, text, err),
			Hint: "write it as [PROJECT/]NAME[@STEP|@best|@weights/SAVED]"}
	}
	return ref, nil
}

// ReferenceOf names the run in a folder.
func ReferenceOf(dir string) Reference {
	return Reference{Project: filepath.Base(filepath.Dir(filepath.Dir(dir))), Name: filepath.Base(dir)}
}

// Dir returns the folder of the run below a root.
func (r Reference) Dir(root string) string { return filepath.Join(root, r.Project, "models", r.Name) }

// String writes the reference.
func (r Reference) String() string {
	text := r.Project + "/" + r.Name
	if r.Step != "" {
		text += "@" + r.Step
	}
	return text
}

// Resolve returns the number of a step of the run: "" is the newest, [Best] the one with the highest "val/reward".
func (r *Reader) Resolve(step string) (int, error) {
	steps, err := r.Steps()
	if err != nil {
		return 0, err
	}
	switch {
	case step == Best:
		rows, err := r.History()
		if err != nil {
			return 0, err
		}
		return art.BestStep(rows, steps, "")
	case strings.HasPrefix(step, weightsPrefix):
		return 0, invalid("find step", fmt.Errorf("%q names saved weights, where a step is wanted", step))
	case step != "":
		return strconv.Atoi(step)
	case len(steps) == 0:
		return 0, nil
	}
	return steps[len(steps)-1], nil
}
