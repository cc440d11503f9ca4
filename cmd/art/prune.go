package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/internal/runs"
)

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
