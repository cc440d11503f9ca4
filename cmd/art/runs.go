package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/migrate"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/internal/runs"
)

func init() {
	verbs["runs list"] = verb{
		summary: "all runs: newest and best step, reward, size",
		runs:    true,
		text: `
Lists the runs in --dir: the base model, the newest step, the best step by val/reward, the newest
train/reward, the size on disk, how many checkpoints are kept and what the newest takes, and when
something was last stored.`,
		define: func(flags *flag.FlagSet) action {
			asJSON := flags.Bool("json", false, "print JSON")
			return func(_ []string, stdout, stderr io.Writer) error { return listRuns(*asJSON, stdout, stderr) }
		},
	}
}

func listRuns(asJSON bool, stdout, stderr io.Writer) error {
	all, damaged := rundir.List(runsRoot())
	list := []runSummary{}
	for _, r := range all {
		s, err := summarize(r)
		if err != nil {
			damaged = errors.Join(damaged, err)
			continue
		}
		list = append(list, s)
	}
	if damaged != nil {
		fmt.Fprintf(stderr, "art: runs list: left out: %v\n", damaged)
	}
	if asJSON {
		return writeJSON(stdout, list)
	}
	if len(list) == 0 {
		return write(stdout, fmt.Sprintf("no runs in %s; --dir or ART_DIR looks elsewhere\n", runsRoot()))
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RUN\tBASE\tSTEP\tBEST\tVAL/REWARD\tTRAIN/REWARD\tSIZE\tCHECKPOINTS\tSTORED")
	for _, s := range list {
		best := "-"
		if s.BestStep != nil {
			best = fmt.Sprint(*s.BestStep)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Run, s.Base, s.Step, best, number(s.Best),
			number(s.Reward), quantity.Bytes(s.Bytes), s.checkpoints(), s.Stored.Format("2006-01-02 15:04"))
	}
	return table.Flush()
}

// runSummary is what runs list says of a run.
type runSummary struct {
	Run      string   `json:"run"`
	Folder   string   `json:"folder"`
	Base     string   `json:"base"`
	Step     int      `json:"step"`
	BestStep *int     `json:"best_step,omitempty"`
	Best     *float64 `json:"best_val_reward,omitempty"`
	Reward   *float64 `json:"train_reward,omitempty"`
	Bytes    int64    `json:"bytes"`
	// Checkpoints are the steps that are kept, and StepBytes is the size of the newest.
	Checkpoints int   `json:"checkpoints"`
	StepBytes   int64 `json:"step_bytes"`
	// Stored is when a file was last written.
	Stored time.Time `json:"stored"`
}

// checkpoints says what the steps take that are kept.
func (s *runSummary) checkpoints() string {
	if s.Checkpoints == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %s", s.Checkpoints, quantity.Bytes(s.StepBytes))
}

// number writes a value that may be absent.
func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.4g", *v)
}

// summarize reads what runs list says of a run.
func summarize(r *rundir.Run) (runSummary, error) {
	about := r.About()
	s := runSummary{Run: about.Project + "/" + about.Name, Folder: r.Dir(), Base: about.Base}
	steps, err := r.Steps()
	if err != nil {
		return s, err
	}
	rows, err := r.History()
	if err != nil {
		return s, err
	}
	if len(steps) > 0 {
		s.Step = steps[len(steps)-1]
		s.Checkpoints, s.StepBytes = len(steps), runs.CheckpointBytes(r.Dir(), s.Step)
	}
	if best, err := art.BestStep(rows, steps, ""); err == nil {
		value, _ := art.Logged(rows, "val/reward", best)
		s.BestStep, s.Best = &best, &value
	}
	for _, row := range slices.Backward(rows) {
		if value, ok := row.Metrics["train/reward"]; ok {
			s.Reward = &value
			break
		}
	}
	s.Bytes, s.Stored, err = usage(r.Dir())
	return s, err
}

// usage returns the bytes of a folder, each file once however many links it has, and when one was last written.
func usage(dir string) (bytes int64, newest time.Time, err error) {
	var seen []fs.FileInfo
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		same := func(other fs.FileInfo) bool { return os.SameFile(info, other) }
		if info.Size() > 1<<16 { // small files have no links
			if slices.ContainsFunc(seen, same) {
				return nil
			}
			seen = append(seen, info)
		}
		bytes += info.Size()
		return nil
	})
	return bytes, newest, err
}

func init() {
	verbs["runs prune"] = verb{
		summary: "delete checkpoints of a run",
		args:    "RUN",
		runs:    true,
		text: `
Says which checkpoints --newest, --best and --every leave; with --yes the others are deleted.
History and trajectories stay.

` + runNames,
		define: func(flags *flag.FlagSet) action {
			var v pruner
			flags.BoolVar(&v.yes, "yes", false, "delete")
			flags.IntVar(&v.keep.Newest, "newest", 1, "keep so `many` of the newest")
			flags.StringVar(&v.keep.Best, "best", "val/reward", "keep the best step by this `metric`; empty: none")
			flags.IntVar(&v.keep.Every, "every", 0, "keep the multiples of `n`; 0: none")
			return v.run
		},
	}
}

// pruner is the verb runs prune with its flags.
type pruner struct {
	yes  bool
	keep art.Retention
}

// run deletes checkpoints, or says which it would.
func (v *pruner) run(args []string, stdout, _ io.Writer) error {
	if len(args) != 1 {
		return badUsage("want one RUN")
	}
	r, _, err := findRun(args[0])
	if err != nil {
		return err
	}
	steps, err := r.Steps()
	if err != nil {
		return err
	}
	rows, err := r.History()
	if err != nil {
		return err
	}
	keep := v.keep.Keep(steps, rows)
	dropped := slices.DeleteFunc(slices.Clone(steps), func(step int) bool { return slices.Contains(keep, step) })
	before, _, err := usage(r.Dir())
	if err != nil {
		return err
	}
	text := fmt.Sprintf("keeps %v of %s", keep, quantity.Of(len(steps), "checkpoint"))
	if len(dropped) == 0 || !v.yes {
		hint := ""
		if len(dropped) > 0 {
			hint = "; --yes deletes the others"
		} else if _, err := art.BestStep(rows, steps, v.keep.Best); v.keep.Best != "" && err != nil {
			why := "no stored step has it"
			if logged := loggedMetrics(rows); !slices.Contains(logged, v.keep.Best) {
				why = notLogged(v.keep.Best, logged)
			}
			hint = fmt.Sprintf(": --best %s: %s; so any step may be the best, and --best= keeps none for it", v.keep.Best, why)
		}
		return write(stdout, text+hint+"\n")
	}
	run, err := lockRun(r)
	if err != nil {
		return err
	}
	if err := errors.Join(run.DeleteCheckpoints(keep), run.Close()); err != nil {
		return err
	}
	after, _, err := usage(r.Dir())
	if err != nil {
		return err
	}
	return write(stdout, fmt.Sprintf("%s; %s are free\n", text, quantity.Bytes(before-after)))
}

// lockRun opens a run to change it.
func lockRun(r *rundir.Run) (*runs.Run, error) {
	ref := runs.ReferenceOf(r.Dir())
	return runs.Open(filepath.Dir(filepath.Dir(filepath.Dir(r.Dir()))), ref.Project, ref.Name, nil)
}

func init() {
	verbs["runs migrate"] = verb{
		summary: "read a run of OpenPipe's ART, 0.3 to 0.5",
		args:    "FOLDER",
		runs:    true,
		text: `
Copies a run of OpenPipe's ART into a run of this library: metrics, trajectories (JSONL or Parquet)
and adapters. FOLDER is ART's folder of the model, .art/PROJECT/models/NAME; it is not changed. The
run is called as there, in --dir, unless --project and --name say otherwise.

The copy is for reading, with show, plot and runs, and to begin with: an adapter of it is one for
ModelOptions.Adapter. It cannot be trained on again, because ART does not keep the tokens of
prompts.`,
		define: func(flags *flag.FlagSet) action {
			m := migrateVerb{}
			flags.StringVar(&m.project, "project", "", "`project` of the copy")
			flags.StringVar(&m.name, "name", "", "`name` of the copy")
			flags.BoolVar(&m.dry, "dry-run", false, "read everything, and write nothing")
			return m.run
		},
	}
}

// migrateVerb is the verb runs migrate with its flags.
type migrateVerb struct {
	project, name string
	dry           bool
}

func (m *migrateVerb) run(args []string, stdout, _ io.Writer) error {
	if len(args) != 1 {
		return badUsage("want the FOLDER of a model of ART")
	}
	dir, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	name := cmp.Or(m.name, filepath.Base(dir))
	project := cmp.Or(m.project, filepath.Base(filepath.Dir(filepath.Dir(dir))))
	r, err := migrate.Run(dir, runsRoot(), project, name, m.dry)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s/%s: %s of metrics, %s in %s of %s", r.Project, r.Name, quantity.Of(r.Rows, "row"),
		quantity.Of(r.Trajectories, "trajectory"), quantity.Of(r.Groups, "group"), quantity.Of(r.Files, "file"))
	if m.dry {
		text += "; nothing was written"
	} else {
		text += fmt.Sprintf(", %s, %d of them with an adapter", quantity.Of(r.Steps, "step"), r.Adapters)
	}
	if n := len(r.Problems); n > 0 {
		text += fmt.Sprintf("\nleft out %d:\n  %s", n, strings.Join(r.Problems, "\n  "))
	}
	return write(stdout, text+"\n")
}

func init() {
	verbs["runs fork"] = verb{
		summary: "begin a run with a step of another",
		args:    "RUN NAME",
		runs:    true,
		text: `
Makes a run that begins, at step 0, with the weights and the optimizer of a step of RUN, in the same
project. A program continues it with the same ModelOptions: Fork and the name. The weights of the
base have the type that they have in RUN; int8 needs a --device of XLA.

` + runNames,
		define: func(flags *flag.FlagSet) action {
			device := flags.String("device", "", deviceUsage)
			return func(args []string, stdout, stderr io.Writer) error {
				if len(args) != 2 {
					return badUsage("want RUN and the NAME of the new run")
				}
				return fork(args[0], args[1], *device, stdout, stderr)
			}
		},
	}
}

// fork makes the run.
func fork(from, name, device string, stdout, stderr io.Writer) (err error) {
	r, step, err := findRun(from)
	if err != nil {
		return err
	}
	ref, name := runs.ReferenceOf(r.Dir()), strings.TrimPrefix(name, runPrefix)
	ctx, root := context.Background(), filepath.Dir(filepath.Dir(filepath.Dir(r.Dir())))
	if exists(filepath.Join(root, ref.Project, "models", name, "model.json")) { // a fork that failed has none
		return fmt.Errorf("the run %s/%s exists already: take another name", ref.Project, name)
	}
	about := r.About()
	backend, err := local.Open(ctx, &local.Options{Dir: root, Device: device, Progress: stderr, Slots: 1, Context: 256})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	opts := &art.ModelOptions{
		Project: ref.Project, Base: about.Base, Seed: about.Seed, Fork: fmt.Sprintf("%s/%s@%d", ref.Project, ref.Name, step),
	}
	m := art.NewModel(name, opts)
	if err := m.Register(ctx, backend); err != nil {
		return err
	}
	dir, err := backend.Dir(m)
	if err != nil {
		return err
	}
	return write(stdout, fmt.Sprintf("%s\ncontinue it with\n"+
		"art.NewModel(%q, &art.ModelOptions{Project: %q, Base: %q, Seed: %d, Fork: %q})\n",
		dir, m.Name(), opts.Project, opts.Base, opts.Seed, opts.Fork))
}
