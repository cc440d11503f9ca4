package runs

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
)

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
