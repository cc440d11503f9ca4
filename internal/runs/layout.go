package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// modelName is the file that describes the model. Each checkpoint has a copy.
	modelName = "model.json"
	// layoutVersion is the layout of run directories that this package writes, as stored in model.json. It reads them
	// from oldestLayout on.
	//
	//	1  (not stored) the rows and trajectories of the update from k to k+1 were those of step k+1
	//	2  they are those of step k; history.checksum.json
	//	3  model.json always says how a model computes; a program that knows only 2 would continue in float32
	layoutVersion = 3
	oldestLayout  = 2
	keyLayout     = "layout"
)

// trainSplit is the split whose rows and trajectories belong to updates.
const trainSplit = "train"

// readLayout reads model.json and refuses a directory of another layout, before anything in it is changed.
func (r *Run) readLayout() error {
	const op = "open run"
	content, err := os.ReadFile(filepath.Join(r.dir, modelName))
	if errors.Is(err, fs.ErrNotExist) {
		used, err := r.used()
		if err != nil || !used {
			return storage(op, err, "")
		}
		return corrupt(op, fmt.Errorf("%s has checkpoints, trajectories or history but no %s: "+
			"which model they belong to is not known", r.dir, modelName), "nothing was changed; "+r.restoreModel())
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
	if head.Layout < oldestLayout || head.Layout > layoutVersion {
		hint := upgrade
		if head.Layout < oldestLayout {
			hint = "nothing was changed; use another model name for a new run, which can begin with the old adapter: " +
				"set ModelOptions.Adapter to one of the folders in " + r.checkpoints()
		}
		return unsupported(op, fmt.Errorf("%s is a run directory of layout %d, and this version of art continues those of "+
			"layouts %d to %d", r.dir, max(head.Layout, 1), oldestLayout, layoutVersion), hint)
	}
	r.model, r.layout = content, head.Layout
	return nil
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

// ReadModel reads model.json into v, a pointer. It returns false when there is none.
func (r *Run) ReadModel(v any) (bool, error) { return r.readDocument(modelName, v) }

// WriteModel replaces model.json by the JSON of v, an object, with the version of the layout. It must precede anything
// else that is stored in a run.
func (r *Run) WriteModel(v any) error {
	return r.change(opWriteModel, func() error { return r.writeModel(v) })
}

// Migrate is [Run.WriteModel] for a directory of an older layout. In one of the newest it changes nothing.
func (r *Run) Migrate(v any) error {
	return r.change(opWriteModel, func() error {
		if r.layout == layoutVersion {
			return nil
		}
		return r.writeModel(v)
	})
}

const opWriteModel = "write " + modelName

func (r *Run) writeModel(v any) error {
	content, err := withLayout(v)
	if err != nil {
		return invalid(opWriteModel, err)
	}
	if err := r.disk.Replace(filepath.Join(r.dir, modelName), content); err != nil {
		return storage(opWriteModel, err, "")
	}
	r.model, r.layout = content, layoutVersion
	return nil
}

// ReadState reads the user's state.json into v, a pointer. It returns false when there is none.
func (r *Run) ReadState(v any) (bool, error) { return r.readDocument("state.json", v) }

// WriteState replaces state.json by the JSON of v.
func (r *Run) WriteState(v any) error {
	return r.change("write state.json", func() error { return r.writeDocument("state.json", v) })
}

// MergeState applies a JSON merge patch (RFC 7396) to state.json: objects are merged key by key, null deletes a key,
// and other values replace.
func (r *Run) MergeState(patch any) error {
	return r.change("merge state.json", func() error {
		content, err := json.Marshal(patch)
		if err != nil {
			return invalid("merge state.json", err)
		}
		change, err := decodeNumbers(content)
		if err != nil {
			return invalid("merge state.json", err)
		}
		var raw json.RawMessage
		var state any
		if ok, err := r.ReadState(&raw); err != nil {
			return err
		} else if ok {
			if state, err = decodeNumbers(raw); err != nil {
				return err
			}
		}
		return r.writeDocument("state.json", mergePatch(state, change))
	})
}

// mergePatch is MergePatch of RFC 7396, section 2.
func mergePatch(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for key, value := range changes {
		if value == nil {
			delete(object, key)
		} else {
			object[key] = mergePatch(object[key], value)
		}
	}
	return object
}

func (r *Run) readDocument(name string, v any) (bool, error) {
	path := filepath.Join(r.dir, name)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, storage("read "+name, err, "")
	}
	if err := json.Unmarshal(content, v); err != nil {
		return false, corrupt("read "+name, fmt.Errorf("%s: %w", path, err), "repair the file or move it away")
	}
	return true, nil
}

func (r *Run) writeDocument(name string, v any) error {
	content, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return invalid("write "+name, err)
	}
	return storage("write "+name, r.disk.Replace(filepath.Join(r.dir, name), append(content, '\n')), "")
}

// decodeNumbers decodes JSON with numbers as they are written.
func decodeNumbers(content []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	return v, d.Decode(&v)
}

const maxName = 128 // bytes

// checkName checks that a name is a single path element: no separators, no leading dot, which temporary files have, and
// no '@', which separates the name of a model from its step.
func checkName(what, name string) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("%s name %q must have 1 to %d bytes", what, name, maxName)
	case strings.ContainsAny(name, `/\@`), strings.ContainsFunc(name, unicode.IsControl), !utf8.ValidString(name):
		return fmt.Errorf("%s name %q has '/', '\\', '@' or a character that cannot be printed", what, name)
	case name[0] == '.', strings.TrimSpace(name) != name:
		return fmt.Errorf("%s name %q begins with '.', or begins or ends with a space", what, name)
	case runtime.GOOS == "windows" && !isWindowsName(name):
		return fmt.Errorf("%s name %q cannot be the name of a folder on Windows", what, name)
	}
	return nil
}

// windowsDevices are names that Windows keeps for devices, with any ending.
var windowsDevices = strings.Fields("con prn aux nul com0 com1 com2 com3 com4 com5 com6 com7 com8 com9 " +
	"lpt0 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9")

// isWindowsName reports whether a name that is fine elsewhere can be a folder on Windows, where a colon begins the name
// of a stream within a file, and a dot at the end is dropped.
func isWindowsName(name string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	return !strings.ContainsAny(name, `<>:"|?*`) && !strings.HasSuffix(name, ".") && !slices.Contains(windowsDevices, stem)
}

// checkSplit refuses a split whose name differs from a stored one, or from that of updates, only in case: they would
// have one folder on macOS and Windows.
func (r *Run) checkSplit(split string) error {
	stored, err := r.splits()
	if err != nil {
		return err
	}
	for _, other := range append(stored, trainSplit) {
		if other != split && strings.EqualFold(other, split) {
			return fmt.Errorf("split name %q differs from %q only in capitals, which some file systems do not tell apart",
				split, other)
		}
	}
	return nil
}

// stepName is the name of a step in the file system: 0001.
func stepName(step int) string { return fmt.Sprintf("%04d", step) }

// parseStep is the inverse of stepName.
func parseStep(name string) (step int, ok bool) {
	step, err := strconv.Atoi(name)
	return step, err == nil && step >= 0 && stepName(step) == name
}
