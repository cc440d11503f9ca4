package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu"
)

func init() {
	verbs["bench"] = verb{
		summary: "how fast the device computes",
		text: `
Measures operations of the CPU device at fixed shapes, each as a graph that is compiled once and run
again and again, and prints the best and the median time of a run.

A name is operation/shape. product/MxKxN is [M,K] x [K,N], and its last part says how the second
matrix lies in memory: plain is [K,N], transposed is [N,K]. Inputs that fit into the caches are
found there, but for the first run, which does not count. adamw writes its outputs over its inputs.

GFLOP/s are 2 M K N / 10^9 and GB/s the bytes of all inputs and outputs / 10^9, by the best time.`,
		define: func(flags *flag.FlagSet) action {
			var o benchOptions
			flags.BoolVar(&o.json, "json", false, "print one JSON object: machine, results")
			flags.StringVar(&o.run, "run", "", "measure the operations whose name matches `regexp`; all when empty")
			flags.DurationVar(&o.time, "time", 300*time.Millisecond, "`duration` of each measurement; 300ms when left out")
			return func(_ []string, stdout, stderr io.Writer) error {
				return o.bench(stdout, newProgress(stderr))
			}
		},
	}
}

// benchOptions are the flags of bench.
type benchOptions struct {
	json bool
	run  string
	time time.Duration
}

// result is a job that was measured.
type result struct {
	Name   string  `json:"name"`
	Best   int64   `json:"best_ns"`
	Median int64   `json:"median_ns"`
	Runs   int     `json:"runs"`
	GFLOP  float64 `json:"gflop_per_s,omitempty"` // products only
	GB     float64 `json:"gb_per_s"`
}

// bench measures the jobs that are asked for.
func (o benchOptions) bench(stdout io.Writer, p progress) error {
	selected, err := o.selected()
	if err != nil {
		return err
	}
	device, err := cpu.New(nil)
	if err != nil {
		return err
	}
	defer device.Finalize()
	out := struct {
		Machine machine  `json:"machine"`
		Results []result `json:"results"`
	}{Machine: inspect(os.DirFS("/"))}

	table := benchTable(selected)
	if !o.json {
		if err := write(stdout, table.head()); err != nil {
			return err
		}
	}
	for i, j := range selected {
		p.say("%d of %d: %s", i+1, len(selected), j.name)
		r, err := j.measure(device, o.time)
		p.say("")
		if err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		out.Results = append(out.Results, r)
		if !o.json {
			err = write(stdout, table.row(r))
		}
		if err != nil {
			return err
		}
	}
	if o.json {
		return writeJSON(stdout, out)
	}
	return nil
}

// selected returns the jobs that are asked for.
func (o benchOptions) selected() ([]job, error) {
	if o.time < 0 {
		return nil, badUsage("--time %v: give 0 or more", o.time)
	}
	pattern, err := regexp.Compile(o.run)
	if err != nil {
		return nil, badUsage("--run: %v", err)
	}
	all := jobs()
	selected := slices.DeleteFunc(slices.Clone(all), func(j job) bool { return !pattern.MatchString(j.name) })
	if len(selected) > 0 {
		return selected, nil
	}
	names := make([]string, len(all))
	for i, j := range all {
		names[i] = j.name
	}
	return nil, badUsage("--run: no operation matches %q; there are\n  %s", o.run, strings.Join(names, "\n  "))
}

// measure runs a job for so long, and three times at least.
func (j job) measure(device compute.Backend, budget time.Duration) (result, error) {
	p, err := compile(device, j)
	if err != nil {
		return result{}, err
	}
	defer p.close()
	if err := p.once(); err != nil {
		return result{}, err
	}
	runtime.GC() // what the job before left is not collected while this one is measured
	t, err := measure(budget, 3, p.once)
	if err != nil {
		return result{}, err
	}
	return result{
		Name: j.name, Best: t.best().Nanoseconds(), Median: t.median().Nanoseconds(), Runs: len(t),
		GFLOP: perSecond(j.flops, t.best()), GB: perSecond(float64(p.traffic), t.best()),
	}, nil
}
