package main

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

	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/hub"
	"github.com/goart-dev/art/model/tiny"
)

// models explains MODEL in the help of verbs.
const models = `MODEL is a folder, a GGUF file, tiny, or ORG/NAME[@revision] that art model pull fetched. It may
also be a run, run:[PROJECT/]NAME[@STEP|@best], its name alone, its folder, or a folder in its
checkpoints: that is the base model of the run with the adapter of the newest checkpoint, or of the
given one. Where all weights are trained the checkpoint is the model.`

// runNames is what the help of verbs says about RUN.
const runNames = `RUN is run:[PROJECT/]NAME[@STEP|@best], with run: or without, or the folder of a run. @best is the
step with the highest val/reward. Runs are looked up in --dir, by default $ART_DIR or .art.`

// runPrefix marks the name of a run.
const runPrefix = "run:"

// runsDir is the flag --dir, which all verbs share that have to do with runs.
var runsDir string

// runsRoot is where runs are looked up, and stored.
func runsRoot() string { return cmp.Or(runsDir, os.Getenv("ART_DIR"), ".art") }

// findRun returns the run that a name or a folder stands for, and the step: the newest when none is named.
func findRun(name string) (r *rundir.Run, step int, err error) {
	plain, marked := strings.CutPrefix(name, runPrefix)
	if !marked && exists(filepath.Join(name, "model.json")) {
		if r, err = rundir.Open(name); err != nil {
			return nil, 0, err
		}
		steps, err := r.Steps()
		if len(steps) > 0 {
			step = steps[len(steps)-1]
		}
		return r, step, err
	}
	r, step, err = rundir.Find(runsRoot(), plain)
	if name, _, _ := strings.Cut(plain, "@"); errors.Is(err, fs.ErrNotExist) && !slices.Contains(runsThere(), name) {
		err = fmt.Errorf("no run in %s is called %q%s; art runs lists those there are, and --dir or ART_DIR looks elsewhere",
			runsRoot(), name, suggest("", name, runsThere()))
	}
	return r, step, err
}

// runsThere are the names of all runs that can be read, with their projects and without.
func runsThere() []string {
	var names []string
	list, _ := rundir.List(runsRoot())
	for _, r := range list {
		names = append(names, r.About().Name, r.About().Project+"/"+r.About().Name)
	}
	return names
}

// isRunName tells whether a name is that of a run: it is marked, or a single word that is no model and that a run has.
func isRunName(name string) bool {
	if strings.HasPrefix(name, runPrefix) {
		return true
	}
	if name == tiny.Name || strings.ContainsAny(name, `/\`) || exists(name) {
		return false
	}
	_, _, err := rundir.Find(runsRoot(), name)
	return err == nil
}

const adapterConfig = "adapter_config.json"

// source is what MODEL names: a base model, and an adapter when it is a run or one of its checkpoints.
type source struct {
	name    string // of the base model, as given or as recorded in the run
	path    string // of the base model: a folder, a file, or tiny
	adapter string // folder of the adapter; empty: none
	run     string // folder of the run; empty: none
}

// find resolves a name.
func find(name string) (source, error) {
	s := source{name: name}
	var err error
	switch {
	case isRunName(name):
		s.run, s.adapter, err = findStep(name)
	case isRun(name):
		s.run = name
		s.adapter, err = newestCheckpoint(name)
	case exists(filepath.Join(name, adapterConfig)):
		s.adapter = name
		if run := filepath.Dir(filepath.Dir(filepath.Clean(name))); isRun(run) {
			s.run = run
		}
	}
	if s.adapter != "" && !exists(filepath.Join(s.adapter, adapterConfig)) { // a step of which all weights were trained
		s.path, s.adapter = s.adapter, ""
		return s, nil
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

// findStep returns the folders of a run and of the checkpoint that a name stands for; a run that is not trained has
// none.
func findStep(name string) (run, checkpoint string, err error) {
	r, step, err := findRun(name)
	if err != nil {
		return "", "", err
	}
	steps, err := r.Steps()
	if err != nil || len(steps) == 0 {
		return r.Dir(), "", err
	}
	checkpoint, err = r.Checkpoint(step)
	return r.Dir(), checkpoint, err
}

// findBase returns the path of a base model: of a folder, a file, or what the cache of the hub has under a name. That
// of the built-in model is its name.
func findBase(name string) (path string, err error) {
	switch {
	case name == tiny.Name, basemodel.IsFile(name):
		return name, nil
	case basemodel.IsFolder(name):
		if !exists(filepath.Join(name, model.ConfigFile)) {
			return "", fmt.Errorf("%s is not the folder of a model: it has no config.json beside model.safetensors; the folder "+
				"of a run is .art/PROJECT/models/NAME", name)
		}
		return name, nil
	}
	if _, err := hub.ParseName(name); err != nil {
		return "", fmt.Errorf("%q is neither a folder, nor a file, nor ORG/NAME, nor a run%s; check the path; tiny is the "+
			"built-in model", name, suggest("", name, append(runsThere(), tiny.Name)))
	}
	s, err := hub.Cached(name, nil)
	if err != nil {
		return "", err
	}
	return s.Dir, nil
}

// with adds the adapter of a flag: of a folder, or of the newest checkpoint of a run. It may be empty.
func (s source) with(adapter string) (source, error) {
	switch {
	case adapter == "":
		return s, nil
	case s.adapter != "":
		return s, badUsage("--adapter %s: %s is an adapter already; name its base model, %s, instead", adapter, s.adapter,
			s.name)
	case isRun(adapter):
		newest, err := newestCheckpoint(adapter)
		if err == nil && newest == "" {
			err = fmt.Errorf("the run %s has no checkpoint yet", adapter)
		}
		if err == nil && !exists(filepath.Join(newest, adapterConfig)) {
			err = fmt.Errorf("all weights of the run %s are trained, it has no adapter: name the run in place of its base model",
				adapter)
		}
		s.adapter = newest
		return s, err
	case !exists(filepath.Join(adapter, adapterConfig)):
		return s, fmt.Errorf("%s is not the folder of an adapter: it has no %s; name a run, .art/PROJECT/models/NAME, or a "+
			"folder in its checkpoints", adapter, adapterConfig)
	}
	s.adapter = adapter
	return s, nil
}

// base returns the name of the base model that the run records, or else the configuration of the adapter.
func (s source) base() (string, error) {
	if s.run == "" {
		var c struct {
			Base string `json:"base_model_name_or_path"`
		}
		if err := readJSON(filepath.Join(s.adapter, adapterConfig), &c); err != nil || c.Base != "" {
			return c.Base, err
		}
		return "", fmt.Errorf("%s does not record its base model: name that, and this folder with --adapter", s.adapter)
	}
	var m struct{ Base, Commit string }
	path := filepath.Join(s.run, "model.json")
	if err := readJSON(path, &m); err != nil {
		return "", err
	}
	if m.Base == "" {
		return "", fmt.Errorf("%s does not record the base model: name that, and the run with --adapter", path)
	}
	if name, err := hub.ParseName(m.Base); err == nil && m.Commit != "" {
		return name.Repo + "@" + m.Commit, nil
	}
	return m.Base, nil
}

// open opens the base model. Where its RoPE depends on the context it has that of the run.
func (s source) open() (*basemodel.Base, error) {
	run := s.run
	if run == "" && s.adapter != "" {
		run = filepath.Dir(filepath.Dir(filepath.Clean(s.adapter)))
	}
	var m struct {
		RopeContext int `json:"rope_context"`
	}
	if run != "" && isRun(run) {
		if err := readJSON(filepath.Join(run, "model.json"), &m); err != nil {
			return nil, err
		}
	}
	base, err := basemodel.Open(s.path)
	if err == nil && m.RopeContext > 0 {
		base.Config, _ = base.Config.WithContext(m.RopeContext)
	}
	return base, err
}

// isRun reports whether a folder is that of a run.
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
