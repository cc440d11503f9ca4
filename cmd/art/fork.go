package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/internal/runs"
)

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
	backend, err := local.Open(ctx, &local.Options{
		Dir: root, Device: device, Weights: about.Weights, Progress: stderr, Slots: 1, Context: 256,
	})
	if err != nil {
		return openError(err, r)
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
