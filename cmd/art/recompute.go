package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/rundir"
)

// deviceUsage is the help of --device.
const deviceUsage = "`device` to compute on: cpu, or xla:cuda, see art doctor; default: cpu"

// recompute opens a backend that computes updates of a run again. done closes it, and removes its folder.
func recompute(
	ctx context.Context, run *rundir.Run, device string, progress io.Writer,
) (backend *local.Backend, done func() error, err error) {
	dir, err := os.MkdirTemp("", "art-")
	if err != nil {
		return nil, nil, err
	}
	backend, err = local.Open(ctx, &local.Options{
		Dir: dir, Device: device, Progress: progress, Slots: 1, Weights: run.About().Weights,
	})
	if err != nil {
		return nil, nil, errors.Join(openError(err, run), os.RemoveAll(dir))
	}
	return backend, func() error { return errors.Join(backend.Close(), os.RemoveAll(dir)) }, nil
}

// openError adds to the error of opening a backend for a run what the verb can do about it.
func openError(err error, run *rundir.Run) error {
	if run.About().Weights != "int8" {
		return err
	}
	return fmt.Errorf("%w; the run has weights in int8: choose a device of XLA with --device", err)
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
