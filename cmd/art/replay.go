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
	"github.com/goart-dev/art/backend/rundir"
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
			return r.run
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
func (v *replay) run(args []string, stdout, stderr io.Writer) (err error) {
	if len(args) != 1 {
		return badUsage("want one RUN@STEP")
	}
	ctx := context.Background()
	update, err := recompute(ctx, args[0], v.device, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, update.done()) }()
	r, err := update.Replay(ctx, update.run.Dir(), update.step)
	if err != nil {
		return err
	}
	return v.report(r, update.Device(), stdout)
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

// deviceUsage is the help of --device.
const deviceUsage = "`device` to compute on: cpu, or xla:cuda, see art doctor; default: cpu"

// weightsUsage is the help of --weights.
const weightsUsage = "`type` of matrices on the device: stored (as a GGUF file has them, on the\n" +
	"CPU), float32, bfloat16, or int8 on a device of XLA; default: that of the\n" +
	"run, and of a new one stored for a GGUF file on the CPU, else float32"

// activationsUsage is the help of --activations.
const activationsUsage = "`type` in which activations are multiplied by stored quantized matrices:\n" +
	"float32, the default, or int8, which is faster and less exact"

// openScratch opens a backend in a temporary folder. done closes it, and removes the folder.
func openScratch(ctx context.Context, o local.Options) (b *local.Backend, done func() error, err error) {
	if o.Dir, err = os.MkdirTemp("", "art-"); err != nil {
		return nil, nil, err
	}
	if b, err = local.Open(ctx, &o); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(o.Dir))
	}
	return b, func() error { return errors.Join(b.Close(), os.RemoveAll(o.Dir)) }, nil
}

// recomputing is a backend that computes an update of a run again: the one from a step to the next.
type recomputing struct {
	*local.Backend
	run  *rundir.Run
	step int
	done func() error
}

// recompute opens the backend for the update from the step that a name has, or else for the newest.
func recompute(ctx context.Context, name, device string, progress io.Writer) (u recomputing, err error) {
	if u.run, u.step, err = findRun(name); err != nil {
		return u, err
	}
	if !strings.Contains(name, "@") {
		u.step--
	}
	if u.step < 0 {
		return u, errors.New("the run has no update yet")
	}
	u.Backend, u.done, err = openScratch(ctx, local.Options{Device: device, Progress: progress, Slots: 1})
	return u, err
}

// otherDevice says on which device a run was made where that is not the one in use, else nothing. A stored device is
// the description, and then the version of Go and the platform. Workers, which a CPU has behind a comma, change no bit.
func otherDevice(stored, used string) string {
	kind, _, _ := strings.Cut(stored, ",")
	here, _, _ := strings.Cut(used, ",")
	if kind == here {
		return ""
	}
	return fmt.Sprintf("the run was made on %s, and this is %s", stored, used)
}
