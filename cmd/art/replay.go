package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/goart-dev/art/backend/local"
)

func init() {
	verbs["runs replay"] = verb{
		summary: "make a step of a run again, and compare",
		args:    "RUN@STEP",
		runs:    true,
		text: `
Computes the update from STEP to the next one again: from the checkpoint, the trajectories and the
configuration that the run stored. On the same kind of device adapter and optimizer have the same
bits as the stored ones; the exit status is 1 where they differ. What is printed says if --device is
not the one of the run. Without a step it is the newest update. Nothing is changed.

` + runNames,
		define: func(flags *flag.FlagSet) action {
			var r replay
			flags.StringVar(&r.device, "device", "", deviceUsage)
			flags.BoolVar(&r.asJSON, "json", false, "print one JSON object: step, equal, difference, device, device_used")
			return func(args []string, stdout, stderr io.Writer) error {
				if len(args) != 1 {
					return badUsage("want one RUN@STEP")
				}
				return r.run(args[0], stdout, stderr)
			}
		},
	}
}

// replayed is what runs replay prints as JSON.
type replayed struct {
	Step       int     `json:"step"` // that was made again
	Equal      bool    `json:"equal"`
	Difference float64 `json:"difference"`  // the largest of a parameter
	Device     string  `json:"device"`      // of the run
	Used       string  `json:"device_used"` // to make it again
}

// replay is the verb runs replay with its flags.
type replay struct {
	device string
	asJSON bool
}

// run makes a step again.
func (v *replay) run(name string, stdout, stderr io.Writer) (err error) {
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
	ctx := context.Background()
	backend, done, err := recompute(ctx, run, v.device, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	r, err := backend.Replay(ctx, run.Dir(), step)
	if err != nil {
		return err
	}
	return v.report(r, backend.Device(), stdout)
}

// report prints the result of a replay on a device. One that differs is an error.
func (v *replay) report(r *local.Replayed, used string, stdout io.Writer) (err error) {
	other := otherDevice(r.Device, used)
	if v.asJSON {
		err = writeJSON(stdout, replayed{r.Step, r.Equal, r.Difference, r.Device, used})
	} else if r.Equal {
		text := fmt.Sprintf("step %d is equal, bit for bit\n", r.Step)
		if other != "" {
			text += other + "\n"
		}
		err = write(stdout, text)
	}
	if err != nil || r.Equal {
		return err
	}
	why := "the run was made on the same kind of device, " + used
	if other != "" {
		why = other + "; take the device of the run with --device"
	}
	return fmt.Errorf("step %d differs from the stored one by up to %.3g in a parameter, or in the optimizer; %s",
		r.Step, r.Difference, why)
}
