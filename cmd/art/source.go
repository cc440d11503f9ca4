package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/hub"
	"github.com/goart-dev/art/model/tiny"
)

// models is what the help of verbs says about MODEL.
const models = `MODEL is a folder, a GGUF file, tiny, or ORG/NAME[@revision] of a model that art pull fetched. It
may also be a run, .art/PROJECT/models/NAME, or a folder in its checkpoints: that is the base model
of the run with the adapter of the newest checkpoint, or of the given one.`

const adapterConfig = "adapter_config.json"

// source is what MODEL names: a base model, and an adapter when it is a run or one of its checkpoints.
type source struct {
	name    string // of the base model, as it was given or as the run has it
	path    string // of the base model: a folder, a file, or tiny
	adapter string // folder of the adapter; empty: none
	run     string // folder of the run; empty: none
}

// find returns what a name says.
func find(name string) (source, error) {
	s := source{name: name}
	var err error
	switch {
	case isRun(name):
		s.run = name
		s.adapter, err = newestCheckpoint(name)
	case exists(filepath.Join(name, adapterConfig)):
		s.adapter = name
		if run := filepath.Dir(filepath.Dir(filepath.Clean(name))); isRun(run) {
			s.run = run
		}
	}
	if err == nil && (s.run != "" || s.adapter != "") {
		s.name, err = s.base()
	}
	if err != nil {
		return s, err
	}
	if s.path, err = findBase(s.name); err != nil && s.name != name {
		err = fmt.Errorf("the base model of %s: %w; name the base model, and the run with --adapter", name, err)
	}
	return s, err
}

// findBase returns the path of a base model: of a folder, a file, or what the cache of the hub has under a name. That
// of the built-in model is its name.
func findBase(name string) (path string, err error) {
	switch {
	case name == tiny.Name, basemodel.IsFile(name):
		return name, nil
	case basemodel.IsFolder(name):
		if !exists(filepath.Join(name, model.ConfigFile)) {
			return "",
				fmt.Errorf("%s is not the folder of a model: it has no config.json beside model.safetensors; the folder of a "+
					"run is .art/PROJECT/models/NAME", name)
		}
		return name, nil
	}
	if _, err := hub.ParseName(name); err != nil {
		return "", fmt.Errorf("%q is neither a folder, nor a file, nor ORG/NAME: check the path; tiny is the built-in model",
			name)
	}
	s, err := hub.Cached(name, nil)
	if err != nil {
		return "", err
	}
	return s.Dir, nil
}

// findAdapter returns the folder of an adapter: that of a run is its newest checkpoint.
func findAdapter(dir string) (string, error) {
	if isRun(dir) {
		newest, err := newestCheckpoint(dir)
		if err == nil && newest == "" {
			err = fmt.Errorf("the run %s has no checkpoint yet", dir)
		}
		return newest, err
	}
	if !exists(filepath.Join(dir, adapterConfig)) {
		return "",
			fmt.Errorf("%s is not the folder of an adapter: it has no %s; name a run, .art/PROJECT/models/NAME, or a folder "+
				"in its checkpoints", dir, adapterConfig)
	}
	return dir, nil
}

// with adds the adapter of a flag, which may be empty.
func (s source) with(adapter string) (source, error) {
	if adapter == "" {
		return s, nil
	}
	if s.adapter != "" {
		return s, badUsage("--adapter %s: %s is an adapter already; name its base model, %s, instead", adapter, s.adapter,
			s.name)
	}
	var err error
	s.adapter, err = findAdapter(adapter)
	return s, err
}

// base returns the name of the base model that a run, or else the file of an adapter, tells.
func (s source) base() (string, error) {
	if s.run == "" {
		var c struct {
			Base string `json:"base_model_name_or_path"`
		}
		if err := readJSON(filepath.Join(s.adapter, adapterConfig), &c); err != nil || c.Base != "" {
			return c.Base, err
		}
		return "", fmt.Errorf("%s does not tell its base model: name that, and this folder with --adapter", s.adapter)
	}
	var m struct{ Base, Commit string }
	path := filepath.Join(s.run, "model.json")
	if err := readJSON(path, &m); err != nil {
		return "", err
	}
	if m.Base == "" {
		return "", fmt.Errorf("%s does not tell the base model: name that, and the run with --adapter", path)
	}
	if name, err := hub.ParseName(m.Base); err == nil && m.Commit != "" {
		return name.Repo + "@" + m.Commit, nil
	}
	return m.Base, nil
}

// isRun tells whether a folder is that of a run.
func isRun(dir string) bool {
	return exists(filepath.Join(dir, "model.json")) && basemodel.IsFolder(filepath.Join(dir, "checkpoints"))
}

// newestCheckpoint returns the folder of the newest step of a run; empty: there is none.
func newestCheckpoint(run string) (string, error) {
	dir := filepath.Join(run, "checkpoints")
	entries, err := os.ReadDir(dir)
	newest, path := -1, ""
	for _, e := range entries {
		step, err := strconv.Atoi(e.Name())
		if err == nil && e.IsDir() && step > newest {
			newest, path = step, filepath.Join(dir, e.Name())
		}
	}
	return path, err
}
