package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
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
