// Package migrate reads the run directories of OpenPipe's ART, versions 0.3 to 0.5, into ours.
//
// Trajectories are read from YAML (0.3), from JSONL (0.4), from Parquet with columns for messages (0.5), and from
// Parquet with JSON (0.5.23): messages, tools, further histories, rewards, metrics, metadata, logs and exceptions. What
// ART keeps of a sampled reply beside its message, such as logprobs, stays with the message as its field "art_choice".
// It is not enough to train on again, because the prompt's tokens are missing; so no message has a sample.
//
// Checkpoints become adapters of the steps that they belong to. A step whose checkpoint ART deleted, as it does unless
// told otherwise, has a note in place of one.
package migrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/runs"
)

// Report is what became of a run.
type Report struct {
	Project, Name string
	Steps         int // checkpoints, notes included
	Adapters      int
	Files         int // of trajectories
	Groups        int
	Trajectories  int
	Rows          int // of metrics
	// Problems are files and rows that could not be read. They are left out.
	Problems []string
}

// source is a run of ART.
type source struct {
	dir    string
	base   string
	files  map[key]string // of trajectories
	rows   map[key]map[string]float64
	report *Report
}

// key is a split and a step.
type key struct {
	split string
	step  int
}

// Run copies the run of ART in dir into root, the folder of our projects, under the given names. The run must not be
// there yet. With dry it only reads. dir is not changed.
func Run(dir, root, project, name string, dry bool) (*Report, error) {
	s := &source{dir: dir, files: map[key]string{}, rows: map[key]map[string]float64{},
		report: &Report{Project: project, Name: name}}
	if err := s.find(); err != nil {
		return nil, err
	}
	groups := s.read()
	if dry {
		return s.report, nil
	}
	return s.report, s.write(root, groups)
}

// find lists what there is.
func (s *source) find() error {
	if info, err := os.Stat(s.dir); err != nil || !info.IsDir() {
		return &art.Error{Op: "migrate", Err: fmt.Errorf("%w: %s is no folder", art.ErrInvalid, s.dir),
			Hint: "give a folder like .art/PROJECT/models/NAME"}
	}
	for _, pattern := range []string{"*.yaml", "*.jsonl", "*.parquet"} { // the later takes precedence: ART migrates to it
		paths, err := filepath.Glob(filepath.Join(s.dir, "trajectories", "*", pattern))
		if err != nil {
			return err
		}
		for _, path := range paths {
			base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
			step, err := strconv.Atoi(base)
			if err != nil || step < 0 {
				s.problem(path, errors.New("its name is not the number of a step"))
				continue
			}
			s.files[key{filepath.Base(filepath.Dir(path)), step}] = path
		}
	}
	s.readHistory()
	var model struct {
		BaseModel string `json:"base_model"`
	}
	content, err := os.ReadFile(filepath.Join(s.dir, "model.json"))
	if err == nil && json.Unmarshal(content, &model) == nil {
		s.base = model.BaseModel
	}
	for _, dir := range s.checkpoints() {
		var adapter struct {
			Base string `json:"base_model_name_or_path"`
		}
		content, err := os.ReadFile(filepath.Join(dir, "adapter_config.json"))
		if s.base == "" && err == nil && json.Unmarshal(content, &adapter) == nil {
			s.base = adapter.Base
		}
	}
	if len(s.files) == 0 && len(s.rows) == 0 && len(s.checkpoints()) == 0 {
		return &art.Error{Op: "migrate", Err: fmt.Errorf("%w: %s has no trajectories, history or checkpoints of ART",
			art.ErrInvalid, s.dir), Hint: "give a folder like .art/PROJECT/models/NAME"}
	}
	return nil
}

func (s *source) problem(where string, err error) {
	if rel, e := filepath.Rel(s.dir, where); e == nil {
		where = rel
	}
	s.report.Problems = append(s.report.Problems, fmt.Sprintf("%s: %v", where, err))
}

// checkpoints returns folders by step: those of 0.5 in checkpoints, those of 0.3 beside history.jsonl.
func (s *source) checkpoints() map[int]string {
	found := map[int]string{}
	for _, parent := range []string{s.dir, filepath.Join(s.dir, "checkpoints")} {
		entries, err := os.ReadDir(parent)
		if err != nil {
			continue
		}
		for _, e := range entries {
			step, err := strconv.Atoi(e.Name())
			dir := filepath.Join(parent, e.Name())
			if _, missing := os.Stat(filepath.Join(dir, "adapter_config.json")); err == nil && step >= 0 && missing == nil {
				found[step] = dir
			}
		}
	}
	return found
}

// readers read files of trajectories, by the ends of their names.
var readers = map[string]func(path string) ([]*art.TrajectoryGroup, error){
	".yaml": readYAML, ".jsonl": readJSONL, ".parquet": readParquet,
}

// read reads all files of trajectories.
func (s *source) read() map[key][]*art.TrajectoryGroup {
	all := map[key][]*art.TrajectoryGroup{}
	for k, path := range s.files {
		groups, err := readers[filepath.Ext(path)](path)
		if err != nil {
			s.problem(path, err)
		}
		if len(groups) == 0 {
			continue
		}
		all[k] = groups
		s.report.Files++
		s.report.Groups += len(groups)
		for _, g := range groups {
			s.report.Trajectories += len(g.Trajectories)
		}
	}
	s.report.Rows = len(s.rows)
	slices.Sort(s.report.Problems)
	return all
}

// write makes our run: a step for each of ART's, and one behind the last training.
func (s *source) write(root string, groups map[key][]*art.TrajectoryGroup) (err error) {
	if _, err := os.Stat(filepath.Join(root, s.report.Project, "models", s.report.Name, "model.json")); err == nil {
		return &art.Error{Op: "migrate", Err: fmt.Errorf("%w: there is a run %s/%s", art.ErrInvalid, s.report.Project,
			s.report.Name), Hint: "take another name or root"}
	}
	run, err := runs.Open(root, s.report.Project, s.report.Name, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	if err := run.WriteModel(map[string]any{
		"name": s.report.Name, "project": s.report.Project, "base": s.base, "frozen": false, "migrated": "ART",
	}); err != nil {
		return err
	}
	newest, checkpoints := s.newest(groups), s.checkpoints()
	for step := range newest + 1 {
		if err := s.writeStep(run, step, checkpoints[step], groups); err != nil {
			return err
		}
	}
	// The splits that are not trained on.
	for k, g := range groups {
		if k.split == "train" {
			continue
		}
		if err := run.WriteTrajectories(k.split, k.step, g); err != nil {
			return err
		}
	}
	for k, metrics := range s.rows {
		if k.split == "train" {
			continue
		}
		if err := run.Log(k.split, k.step, metrics); err != nil {
			return err
		}
	}
	return nil
}

// newest is the last step: no row of training may belong to it, since its update has not been made.
func (s *source) newest(groups map[key][]*art.TrajectoryGroup) int {
	newest := 0
	see := func(k key) {
		if k.split == "train" {
			k.step++
		}
		newest = max(newest, k.step)
	}
	for k := range groups {
		see(k)
	}
	for k := range s.rows {
		see(k)
	}
	for step := range s.checkpoints() {
		newest = max(newest, step)
	}
	return newest
}

// writeStep stores a checkpoint with what was trained on to get there.
func (s *source) writeStep(run *runs.Run, step int, from string, groups map[key][]*art.TrajectoryGroup) error {
	write := func(dir string) error {
		for _, name := range []string{"adapter_config.json", "adapter_model.safetensors"} {
			content, err := os.ReadFile(filepath.Join(from, name))
			if errors.Is(err, fs.ErrNotExist) && name != "adapter_config.json" {
				continue // an old adapter_model.bin, which is no safe format to read
			}
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
				return err
			}
		}
		return nil
	}
	if from == "" {
		write = func(dir string) error {
			note := []byte("{\"checkpoint\": \"ART kept none of this step\"}\n")
			return os.WriteFile(filepath.Join(dir, "migrated.json"), note, 0o644)
		}
	} else {
		s.report.Adapters++
	}
	s.report.Steps++
	if step == 0 {
		return run.Commit(0, write)
	}
	k := key{"train", step - 1}
	return run.CommitUpdate(step, runs.Update{Groups: groups[k], Metrics: s.rows[k]}, write)
}
