package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goart-dev/art/backend/local"
)

func init() {
	verbs["replay"] = verb{
		summary: "make a step of a run again, and compare",
		args:    "RUN@STEP",
		text: `
Computes the update from STEP to the next one again: from the checkpoint, the trajectories and the
configuration that the run stored. On the same kind of device adapter and optimizer have the same
bits as the stored ones; the exit status is 1 where they differ. Without a step it is the newest
update. Nothing is changed.

` + runNames,
		define: func(flags *flag.FlagSet) action {
			asJSON := flags.Bool("json", false, "print one JSON object: step, equal, difference, device")
			return func(args []string, stdout, stderr io.Writer) error {
				if len(args) != 1 {
					return badUsage("want one RUN@STEP")
				}
				return replay(args[0], *asJSON, stdout, stderr)
			}
		},
	}
}

// replayed is what replay prints as JSON.
type replayed struct {
	Step       int     `json:"step"` // that was made again
	Equal      bool    `json:"equal"`
	Difference float64 `json:"difference"` // the largest of a parameter
	Device     string  `json:"device"`     // of the run
}

// replay makes a step again.
func replay(name string, asJSON bool, stdout, stderr io.Writer) (err error) {
	run, step, err := findRun(name)
	if err != nil {
		return err
	}
	if !strings.Contains(name, "@") {
		step--
	}
	if step < 0 {
		return errors.New("the run has no update yet")
	}
	dir, err := os.MkdirTemp("", "art-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx := context.Background()
	backend, err := local.Open(ctx, &local.Options{Dir: dir, Progress: stderr, Slots: 1, Weights: run.About().Weights})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	r, err := backend.Replay(ctx, run.Dir(), step)
	if err != nil {
		return err
	}
	if asJSON {
		err = writeJSON(stdout, replayed(*r))
	} else if r.Equal {
		err = write(stdout, fmt.Sprintf("step %d is equal, bit for bit\n", r.Step))
	}
	if err == nil && !r.Equal {
		err = fmt.Errorf("step %d differs from the stored one by up to %.3g in a parameter, or in the optimizer; "+
			"the run was made on %s, this is %s", r.Step, r.Difference, r.Device, backend.Device())
	}
	return err
}
