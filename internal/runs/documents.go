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

// ReadModel reads model.json into v, a pointer. It returns false when there is none.
func (r *Run) ReadModel(v any) (bool, error) { return r.readDocument(modelName, v) }

// WriteModel replaces model.json by the JSON of v, an object, with the version of the layout. It must precede anything
// else that is stored in a run.
func (r *Run) WriteModel(v any) error {
	const op = "write " + modelName
	return r.change(op, func() error {
		content, err := withLayout(v)
		if err != nil {
			return invalid(op, err)
		}
		if err := r.disk.Replace(filepath.Join(r.dir, modelName), content); err != nil {
			return storage(op, err, "")
		}
		r.model = content
		return nil
	})
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
		change, err := toAny(patch)
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
	if err := r.disk.Replace(filepath.Join(r.dir, name), append(content, '\n')); err != nil {
		return storage("write "+name, err, "")
	}
	return nil
}

// toAny returns v as its JSON reads, with numbers as they are written.
func toAny(v any) (any, error) {
	content, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return decodeNumbers(content)
}

func decodeNumbers(content []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	return v, d.Decode(&v)
}
