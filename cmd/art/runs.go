package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/internal/runs"
)

func init() {
	verbs["runs"] = verb{
		summary: "list, compare and prune runs",
		args:    "[compare RUN RUN... | prune RUN]",
		runs:    true,
		text: `
Lists the runs in --dir: the base model, the newest step, the best step by val/reward, the newest
train/reward, the size on disk, how many checkpoints are kept and what the newest takes, and when
something was last stored.

  art runs compare RUN RUN...   the newest and the best value of each metric, side by side
  art runs prune RUN            which checkpoints --newest, --best and --every leave; with --yes the
                                others are deleted. History and trajectories stay.

` + runNames,
		define: func(flags *flag.FlagSet) action {
			var r runsVerb
			flags.BoolVar(&r.asJSON, "json", false, "print JSON")
			flags.BoolVar(&r.yes, "yes", false, "prune: delete")
			flags.IntVar(&r.keep.Newest, "newest", 1, "prune: keep so `many` of the newest")
			flags.StringVar(&r.keep.Best, "best", "val/reward", "prune: keep the best step by this `metric`; empty: none")
			flags.IntVar(&r.keep.Every, "every", 0, "prune: keep the multiples of `n`; 0: none")
			return r.run
		},
	}
}

// runsVerb is the verb runs with its flags.
type runsVerb struct {
	asJSON, yes bool
	keep        art.Retention
}

func (v *runsVerb) run(args []string, stdout, stderr io.Writer) error {
	switch {
	case len(args) == 0:
		return v.list(stdout, stderr)
	case args[0] == "compare" && len(args) > 2:
		return v.compare(args[1:], stdout)
	case args[0] == "prune" && len(args) == 2:
		return v.prune(args[1], stdout)
	}
	return badUsage("want no arguments, compare RUN RUN..., or prune RUN")
}

// runSummary is what runs says of a run.
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

func (v *runsVerb) list(stdout, stderr io.Writer) error {
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
		fmt.Fprintf(stderr, "art: runs: left out: %v\n", damaged)
	}
	if v.asJSON {
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
			number(s.Reward),
			sizeText(s.Bytes), s.checkpoints(), s.Stored.Format("2006-01-02 15:04"))
	}
	return table.Flush()
}

// checkpoints says what the steps take that are kept.
func (s *runSummary) checkpoints() string {
	if s.Checkpoints == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %s", s.Checkpoints, sizeText(s.StepBytes))
}

// number writes a value that may be absent.
func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.4g", *v)
}

// summarize reads what runs says of a run.
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

// compare prints the newest and the best value of each metric of some runs.
func (v *runsVerb) compare(names []string, stdout io.Writer) error {
	histories := make([][]art.HistoryRow, len(names))
	keys := map[string]bool{}
	for i, name := range names {
		r, _, err := findRun(name)
		if err != nil {
			return err
		}
		if histories[i], err = r.History(); err != nil {
			return err
		}
		for _, row := range histories[i] {
			for key := range row.Metrics {
				keys[key] = true
			}
		}
	}
	sorted := make([]string, 0, len(keys))
	for key := range keys {
		sorted = append(sorted, key)
	}
	slices.Sort(sorted)
	if v.asJSON {
		return writeJSON(stdout, compared(names, histories, sorted))
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "newest (highest)\t%s\t\n", strings.Join(names, "\t"))
	for _, key := range sorted {
		fmt.Fprintf(table, "%s\t", key)
		for _, rows := range histories {
			newest, highest := extremes(rows, key)
			if math.IsNaN(newest) {
				fmt.Fprint(table, "-\t")
				continue
			}
			fmt.Fprintf(table, "%.4g (%.4g)\t", newest, highest)
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// comparison are the values of a metric, by run.
type comparison struct {
	Newest  map[string]float64 `json:"newest"`
	Highest map[string]float64 `json:"highest"`
}

func compared(names []string, histories [][]art.HistoryRow, keys []string) map[string]comparison {
	out := map[string]comparison{}
	for _, key := range keys {
		c := comparison{map[string]float64{}, map[string]float64{}}
		for i, name := range names {
			if newest, highest := extremes(histories[i], key); !math.IsNaN(newest) {
				c.Newest[name], c.Highest[name] = newest, highest
			}
		}
		out[key] = c
	}
	return out
}

// extremes returns the value of the last row that has a metric, and the highest; NaN for none.
func extremes(rows []art.HistoryRow, key string) (newest, highest float64) {
	newest, highest = math.NaN(), math.Inf(-1)
	for _, row := range rows {
		if value, ok := row.Metrics[key]; ok && !math.IsNaN(value) {
			newest, highest = value, max(highest, value)
		}
	}
	return newest, highest
}

// prune deletes checkpoints, or says which it would.
func (v *runsVerb) prune(name string, stdout io.Writer) error {
	r, _, err := findRun(name)
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
	if err := deleteCheckpoints(r, keep); err != nil {
		return err
	}
	after, _, err := usage(r.Dir())
	if err != nil {
		return err
	}
	return write(stdout, fmt.Sprintf("%s; %s are free\n", text, sizeText(before-after)))
}

// deleteCheckpoints deletes all but some. It takes the lock of the run.
func deleteCheckpoints(r *rundir.Run, keep []int) (err error) {
	ref := runs.ReferenceOf(r.Dir())
	root := filepath.Dir(filepath.Dir(filepath.Dir(r.Dir())))
	run, err := runs.Open(root, ref.Project, ref.Name, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	return run.DeleteCheckpoints(keep)
}
