package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/dev/bench/devicebench"
	"github.com/goart-dev/art/internal/dev/bench/trainbench"
	"github.com/goart-dev/art/internal/quantity"
)

func init() {
	verbs["debug bench"] = verb{
		summary: "benchmark the CPU device, a model on it, or training",
		args:    "device | decode|prefill|serve MODEL | train",
		runs:    true,
		text: `
With device it measures operations of the CPU device at fixed shapes, for about a minute. Each is a
graph that is compiled once and run repeatedly; the table has the best and the median time of a run.

A name is operation/shape. matmul/MxKxN is [M,K] x [K,N], and its last part is the layout of the
second matrix: plain is [K,N], transposed is [N,K]. Inputs that fit into the caches stay there after
the first run, which does not count. adamw overwrites its inputs.

GFLOP/s is 2 M K N / 10^9 and GB/s the bytes of all inputs and outputs / 10^9, by the best time.

With a model, requests have prompts of random token ids, and no end token cuts their replies:
  decode   tokens a second that requests at once sample, after the first token of each
  prefill  tokens a second of prompts, until each request has its first token
  serve    turns a second of agents that call the model over HTTP, in conversations that grow

  train    training steps of a model of random weights: groups of answers whose prompts are
           computed once, in turn with the same sequences computed one by one

` + models,
		define: func(flags *flag.FlagSet) action {
			var o benchOptions
			var train trainBench
			train.define(flags, &o.json)
			flags.BoolVar(&o.json, "json", false, "print one JSON object: machine, results; with a model also model, weights")
			flags.StringVar(&o.run, "run", "", "measure the operations whose name matches `regexp`; all when empty")
			flags.DurationVar(&o.time, "time", 300*time.Millisecond, "`duration` of each measurement; default 300ms")
			o.model.flags(flags)
			return func(args []string, stdout, stderr io.Writer) error {
				if err := benchFlags(flags, args); err != nil {
					return err
				}
				switch {
				case len(args) == 1 && args[0] == "device":
					return o.bench(stdout, newProgress(stderr))
				case len(args) == 1 && args[0] == "train":
					train.Weights = o.model.weights
					return train.bench(stdout, newProgress(stderr))
				case len(args) == 2:
					return o.benchModel(args[0], args[1], stdout, stderr)
				}
				return badUsage("want device, train, or decode, prefill or serve and a MODEL\n\n%s",
					verbs["debug bench"].help("debug bench"))
			}
		},
	}
}

// benchFlagsOf are the flags of each benchmark, beside json.
var benchFlagsOf = map[string][]string{
	"device":  {"run", "time"},
	"decode":  {"requests", "prompt", "tokens", "repeat", "slots", "weights", "activations", "shared", "dir"},
	"prefill": {"requests", "prompt", "repeat", "slots", "weights", "activations", "shared", "dir"},
	"serve":   {"tokens", "slots", "weights", "activations", "agents", "turns", "system", "new", "dir"},
	"train": {"shape", "groups", "group-size", "shared-prompt", "answer", "rank", "recompute", "weights",
		"pairs", "only-shared", "cold", "conversation"},
}

// benchFlags refuses flags of another benchmark, which would do nothing.
func benchFlags(flags *flag.FlagSet, args []string) error {
	if len(args) == 0 {
		return nil // the usage is wrong
	}
	kind := args[0]
	known, ok := benchFlagsOf[kind]
	if !ok {
		return nil
	}
	var other []string
	flags.Visit(func(f *flag.Flag) {
		if f.Name != "json" && !slices.Contains(known, f.Name) {
			other = append(other, "--"+f.Name)
		}
	})
	if len(other) == 0 {
		return nil
	}
	return badUsage("%s: not a flag of %s, which takes --json, --%s", strings.Join(other, ", "),
		"debug bench "+kind, strings.Join(known, ", --"))
}

// benchOptions are the flags of bench.
type benchOptions struct {
	json bool
	run  string
	time time.Duration

	model modelBench
}

// benchModel measures a model.
func (o benchOptions) benchModel(kind, name string, stdout, stderr io.Writer) error {
	out := struct {
		Machine platform      `json:"machine"`
		Model   string        `json:"model"`
		Weights string        `json:"weights"`
		Results []modelResult `json:"results"`
	}{Machine: inspectPlatform(os.DirFS("/")), Model: name, Weights: o.model.weights}
	err := o.model.run(kind, name, stderr, func(r modelResult) error {
		out.Results = append(out.Results, r)
		if o.json {
			return nil
		}
		return write(stdout, r.row())
	})
	if err != nil || !o.json {
		return err
	}
	return writeJSON(stdout, out)
}

// bench measures the selected jobs.
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
		Machine platform             `json:"machine"`
		Results []devicebench.Result `json:"results"`
	}{Machine: inspectPlatform(os.DirFS("/"))}

	table := benchTable(selected)
	if !o.json {
		if err := write(stdout, table.head()); err != nil {
			return err
		}
	}
	for i, j := range selected {
		p.say("%d of %d: %s", i+1, len(selected), j.Name)
		r, err := j.Measure(device, o.time)
		p.say("")
		if err != nil {
			return fmt.Errorf("%s: %w", j.Name, err)
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

// selected returns the jobs whose names match --run.
func (o benchOptions) selected() ([]devicebench.Job, error) {
	if o.time < 0 {
		return nil, badUsage("--time %v: give 0 or more", o.time)
	}
	pattern, err := regexp.Compile(o.run)
	if err != nil {
		return nil, badUsage("--run: %v", err)
	}
	all := devicebench.Jobs()
	selected := slices.DeleteFunc(slices.Clone(all), func(j devicebench.Job) bool {
		return !pattern.MatchString(j.Name)
	})
	if len(selected) > 0 {
		return selected, nil
	}
	names := make([]string, len(all))
	for i, j := range all {
		names[i] = j.Name
	}
	return nil, badUsage("--run: no operation matches %q; there are\n  %s", o.run, strings.Join(names, "\n  "))
}

// columns is the table of results. It is printed row by row, as they are measured.
type columns struct{ name int }

// benchTable is as wide as the longest name needs.
func benchTable(list []devicebench.Job) columns {
	c := columns{len("operation")}
	for _, j := range list {
		c.name = max(c.name, len(j.Name))
	}
	return c
}

func (c columns) head() string {
	return fmt.Sprintf("%-*s %11s %11s %7s %9s %7s\n", c.name, "operation", "best", "median", "runs", "GFLOP/s", "GB/s")
}

func (c columns) row(r devicebench.Result) string {
	rate := ""
	if r.GFLOP > 0 {
		rate = fmt.Sprintf("%.1f", r.GFLOP)
	}
	return fmt.Sprintf("%-*s %11s %11s %7d %9s %7.1f\n", c.name, r.Name,
		durationText(time.Duration(r.Best)), durationText(time.Duration(r.Median)), r.Runs, rate, r.GB)
}

// trainBench are the flags of bench train.
type trainBench struct {
	trainbench.Config
	json *bool
}

// define adds the flags. json is shared with the other benchmarks.
func (b *trainBench) define(flags *flag.FlagSet, json *bool) {
	b.json = json
	names := strings.Join(trainbench.Shapes(), ", ")
	flags.StringVar(&b.Shape, "shape", "small", "train: `name` of a model's shape: "+names)
	flags.IntVar(&b.Groups, "groups", 1, "train: `number` of groups in a step")
	flags.IntVar(&b.Size, "group-size", 8, "train: `number` of answers in a group")
	flags.IntVar(&b.Prompt, "shared-prompt", 384, "train: `tokens` that the answers of a group share")
	flags.IntVar(&b.Answer, "answer", 128, "train: `tokens` of an answer")
	flags.BoolVar(&b.Conversation, "conversation", false, "train: the answers of a group are turns of a conversation")
	flags.IntVar(&b.Rank, "rank", 8, "train: `rank` of the adapter")
	flags.BoolVar(&b.Recompute, "recompute", false, "train: compute layers again for their gradient")
	flags.IntVar(&b.Runs, "pairs", 3, "train: `number` of pairs of steps")
	flags.BoolVar(&b.Cold, "cold", false, "train: count the first steps too, which compile: for steps of minutes")
	flags.BoolVar(&b.OnlyShared, "only-shared", false, "train: do not measure sequences one by one")
}

// bench measures steps with shared prompts, and with each sequence alone.
func (b *trainBench) bench(stdout io.Writer, p progress) error {
	device, err := cpu.New(nil)
	if err != nil {
		return err
	}
	defer device.Finalize()
	p.say("training")
	r, err := trainbench.Measure(context.Background(), device, b.Config)
	p.say("")
	if err != nil {
		return badUsage("%v", err)
	}
	if *b.json {
		return writeJSON(stdout, struct {
			Machine platform           `json:"machine"`
			Train   *trainbench.Result `json:"train"`
		}{inspectPlatform(os.DirFS("/")), r})
	}
	head := fmt.Sprintf("%s, %s\n%-8s %10s %10s %12s\n", r.Name, quantity.Of(r.Tokens, "token"), "", "step", "computed",
		"tokens/s")
	work := fmt.Sprintf("intermediate results took %s\n", quantity.Bytes(r.WorkBytes))
	if b.OnlyShared {
		return write(stdout, head+side("shared", r.Shared)+work)
	}
	ratio := fmt.Sprintf("shared prompts are %.2f times as fast, %.2f in processor time, of %.2f\n",
		r.Speedup, r.CPUSpeedup, r.Ideal)
	return write(stdout, head+side("shared", r.Shared)+side("alone", r.Alone)+ratio+work)
}

// side is a row of the table.
func side(name string, s trainbench.Side) string {
	return fmt.Sprintf("%-8s %8.3f s %10d %12.0f\n", name, s.Median, s.Computed, s.Rate)
}
