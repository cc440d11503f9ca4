package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// modelName is the file that describes the model. Each checkpoint has a copy.
	modelName = "model.json"
	// layoutVersion is the layout of run directories that this package reads and writes, as stored in model.json.
	//
	//	1  (not stored) the rows and trajectories of the update from k to k+1 were those of step k+1
	//	2  they are those of step k; history.checksum.json
	layoutVersion = 2
	keyLayout     = "layout"
)

// trainSplit is the split whose rows and trajectories belong to updates.
const trainSplit = "train"

// readLayout reads model.json and refuses a directory of another layout, before anything in it is changed.
func (r *Run) readLayout() error {
	const op = "open run"
	content, err := os.ReadFile(filepath.Join(r.dir, modelName))
	if errors.Is(err, fs.ErrNotExist) {
		return r.refuseUndescribed(op)
	}
	if err != nil {
		return storage(op, err, "")
	}
	var head struct {
		Layout int `json:"layout"`
	}
	if err := json.Unmarshal(content, &head); err != nil {
		err = fmt.Errorf("%s: %w", filepath.Join(r.dir, modelName), err)
		return corrupt(op, err, "nothing was changed; "+r.restoreModel())
	}
	if head.Layout != layoutVersion {
		return r.refuseLayout(op, max(head.Layout, 1))
	}
	r.model = content
	return nil
}

// refuseUndescribed returns the error for a directory that holds a run without model.json.
func (r *Run) refuseUndescribed(op string) error {
	used, err := r.used()
	if err != nil {
		return storage(op, err, "")
	}
	if !used {
		return nil
	}
	return corrupt(op, fmt.Errorf("%s has checkpoints, trajectories or history but no %s: "+
		"which model they belong to is not known", r.dir, modelName), "nothing was changed; "+r.restoreModel())
}

// restoreModel says how to get model.json back.
func (r *Run) restoreModel() string {
	to := filepath.Join(r.dir, modelName)
	steps, err := r.listSteps()
	if err != nil || len(steps) == 0 {
		return "restore " + to + " from a backup, or use another model name for a new run"
	}
	return "copy " + filepath.Join(r.checkpointDir(steps[len(steps)-1]), modelName) + " to " + to
}

// refuseLayout returns the error of a directory in another layout.
func (r *Run) refuseLayout(op string, have int) error {
	hint := upgrade
	if have < layoutVersion {
		hint = "nothing was changed; use another model name for a new run, which can begin with the old adapter: " +
			"set ModelOptions.Adapter to one of the folders in " + r.checkpoints()
	}
	err := fmt.Errorf("%s is a run directory of layout %d, and this version of art continues those of layout %d",
		r.dir, have, layoutVersion)
	return unsupported(op, err, hint)
}

// used reports whether anything that belongs to a model is stored.
func (r *Run) used() (bool, error) {
	if info, err := os.Stat(r.historyPath()); err == nil && info.Size() > 0 {
		return true, nil
	}
	if steps, err := r.listSteps(); err != nil || len(steps) > 0 {
		return true, err
	}
	splits, err := r.splits()
	return len(splits) > 0, err
}

// withLayout adds the version of the layout to a description of a model, which is a JSON object.
func withLayout(v any) ([]byte, error) {
	content, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(content, &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("the description of a model is a JSON object, not %s", content)
	}
	fields[keyLayout] = json.RawMessage(fmt.Sprint(layoutVersion))
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	err = e.Encode(fields)
	return b.Bytes(), err
}
