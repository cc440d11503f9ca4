package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/grpo/dataset"
	"github.com/goart-dev/art/internal/quantity"
)

func init() {
	verbs["sft"] = verb{
		summary: "train a run on examples: supervised fine-tuning",
		args:    "FILE...",
		runs:    true,
		text: `
Trains an adapter on what the assistant says in the examples of one or more JSONL files, in the
format of OpenAI's fine-tuning: {"messages": [...], "tools": [...]} on each line; .gz is read too.

Each step of the run takes --size examples. Stop it at any time: run again, it goes on behind the
last step, with the rates that it would have had. The run is a run like any other: continue it by
reinforcement learning with the same name.
` + trainedHelp + ` With --keep only the newest
steps stay on the disk.`,
		define: func(flags *flag.FlagSet) action {
			s := sftVerb{}
			flags.StringVar(&s.name, "run", "sft", "`name` of the run")
			flags.StringVar(&s.opts.Project, "project", "default", "`project` of the run")
			flags.StringVar(&s.opts.ToolFormat, "tool-format", "", toolFormatUsage)
			flags.StringVar(&s.opts.Base, "model", "tiny", "base `model`: a folder, a GGUF file, ORG/NAME, or tiny")
			s.trained.define(flags)
			flags.IntVar(&s.keep, "keep", 0, "newest `steps` whose weights are kept; 0 is all")
			flags.Uint64Var(&s.opts.Seed, "seed", 0, "`seed` of the adapter and of the order of examples")
			flags.IntVar(&s.size, "size", 256, "`examples` of a step")
			flags.IntVar(&s.shuffle, "shuffle", 10_000, "`examples` that are held in memory to be shuffled; 0: in order")
			flags.IntVar(&s.epochs, "epochs", 1, "times that the data is passed over")
			flags.IntVar(&s.maxSteps, "max-steps", 0, "`step` at which the run ends; 0 is after all epochs")
			flags.Float64Var(&s.cfg.LearningRate, "rate", 0, "learning rate; 0 is that of the size of the model")
			flags.StringVar((*string)(&s.cfg.Schedule), "schedule", string(art.ScheduleConstant),
				"learning rate up to the last step: constant, or falling to 0: linear, cosine")
			flags.Float64Var(&s.cfg.Warmup, "warmup", 0,
				"`fraction` of all steps, 0 to 1, over which the learning rate rises from 0")
			flags.StringVar((*string)(&s.cfg.Turns), "turns", "all",
				"replies of an example that are trained on: all, or the last")
			flags.StringVar(&s.validation, "validation", "", "`FILE` of examples whose loss is printed after each step")
			flags.IntVar(&s.cfg.BatchSize, "batch", 8, "`examples` of an optimizer step")
			flags.StringVar(&s.local.Weights, "weights", "", weightsUsage)
			flags.StringVar(&s.local.Activations, "activations", "", activationsUsage)
			flags.IntVar(&s.local.Context, "context", 0,
				"most `tokens` of an example; 0 is that of the model, if it fits into memory")
			return s.run
		},
	}
}

// sftVerb is the verb sft with its flags.
type sftVerb struct {
	name                  string
	opts                  art.ModelOptions
	trained               trainedFlags
	cfg                   art.SFTConfig
	local                 local.Options
	size, shuffle, epochs int
	keep, maxSteps        int
	validation            string
	steps                 int // of the whole run, if the learning rate depends on them
}

func (s *sftVerb) run(args []string, stdout, stderr io.Writer) (err error) {
	schedules := []art.Schedule{art.ScheduleConstant, art.ScheduleLinear, art.ScheduleCosine}
	switch {
	case len(args) == 0 || s.size < 1 || s.epochs < 1 || s.shuffle < 0 || s.maxSteps < 0:
		return badUsage("want at least one FILE, --size and --epochs of at least 1, and --shuffle and --max-steps of 0 or " +
			"more")
	case !slices.Contains(schedules, s.cfg.Schedule):
		return badUsage("--schedule %s: want %s, %s or %s", s.cfg.Schedule, schedules[0], schedules[1], schedules[2])
	case s.keep < 0:
		return badUsage("--keep %d: want the number of steps to keep, or 0 for all", s.keep)
	case s.keep > 0:
		s.opts.Retention = &art.Retention{Newest: s.keep}
	}
	if err := s.trained.set(&s.opts); err != nil {
		return err
	}
	if s.validation != "" {
		list, err := readRecords[art.Example](s.validation)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return badUsage("--validation %s: the file has no examples", s.validation)
		}
		for _, example := range list {
			s.cfg.Validation = append(s.cfg.Validation, example.Trajectory())
		}
	}
	if err := s.cfg.Validate(); err != nil { // before a run is made
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := errors.Join(s.tryFiles(args), s.countSteps(ctx, args)); err != nil {
		return err
	}
	s.local.Dir, s.local.Progress, s.local.Logger = runsRoot(), stderr, warnings(stderr)
	backend, err := local.Open(ctx, &s.local)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	s.opts.Events = liveLine(stderr)
	m := art.NewModel(s.name, &s.opts)
	if err := m.Register(ctx, backend); err != nil {
		return err
	}
	trained, err := s.train(ctx, m, args, stdout)
	if err != nil {
		return err
	}
	dir, err := backend.Dir(m)
	if err != nil {
		return err
	}
	if trained == 0 {
		return write(stdout, fmt.Sprintf("nothing is left to train on: %s is at step %d\n", dir, m.Step()))
	}
	return write(stdout, fmt.Sprintf("%s is at step %d\n", dir, m.Step()))
}

// tryFiles reads the first example of each file, so that files that are of no use leave no run behind. What can be read
// only once, such as a pipe, is not tried.
func (s *sftVerb) tryFiles(files []string) error {
	found := false
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
			found = true
			continue
		}
		for _, err := range dataset.Stream[art.Example]([]string{file}, nil) {
			if err != nil {
				return err
			}
			found = true
			break
		}
	}
	if !found {
		return fmt.Errorf("%s: there are no examples", strings.Join(files, ", "))
	}
	return nil
}

// train makes a step of each batch that the run has not seen.
func (s *sftVerb) train(ctx context.Context, m *art.Model, files []string, stdout io.Writer) (steps int, err error) {
	if s.maxSteps > 0 && m.Step() >= s.maxSteps {
		return 0, nil
	}
	stream := &dataset.StreamOptions{Shuffle: s.shuffle, Epochs: s.epochs, Seed: s.opts.Seed, Skip: m.Step()}
	for batch, err := range dataset.StreamBatches[art.Example](files, s.size, stream) {
		if err != nil {
			return steps, err
		}
		var list []*art.Trajectory
		for _, example := range batch.Items {
			list = append(list, example.Trajectory())
		}
		cfg := s.cfg
		cfg.Seed, cfg.Part = uint64(m.Step()), s.part(m.Step())
		result, err := m.TrainSFT(ctx, list, &cfg)
		if err != nil {
			return steps, err
		}
		steps++
		if err := write(stdout, stepText(result, len(list))); err != nil || m.Step() == s.maxSteps {
			return steps, err
		}
	}
	return steps, nil
}

// stepText says how a step on n examples went.
func stepText(result *art.TrainResult, n int) string {
	text := fmt.Sprintf("step %d: %s, ", result.Step, quantity.Of(n, "example"))
	if loss, ok := result.Metrics["loss/sft"]; ok {
		text += fmt.Sprintf("loss %.4f", loss)
	} else {
		text += "no finite loss: nothing was learned"
	}
	if loss, ok := result.Metrics["loss/validation"]; ok {
		text += fmt.Sprintf(", validation %.4f", loss)
	}
	if skipped := result.Skipped; len(skipped) > 0 {
		text += fmt.Sprintf("\n  left out %d, the first: %s", len(skipped), skipped[0].Detail)
	}
	return text + "\n"
}

// countSteps reads the files once, if the learning rate depends on the number of steps.
func (s *sftVerb) countSteps(ctx context.Context, files []string) error {
	if s.cfg.Schedule == art.ScheduleConstant && s.cfg.Warmup == 0 {
		return nil
	}
	examples := 0
	for _, err := range dataset.Stream[json.RawMessage](files, nil) {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		examples++
	}
	s.steps = s.epochs * ((examples + s.size - 1) / s.size)
	if s.maxSteps > 0 {
		s.steps = min(s.steps, s.maxSteps)
	}
	return nil
}

// part is what a step, counted from 0, is of the run. It depends on nothing else, so that a run that goes on has the
// rates of one that was never stopped.
func (s *sftVerb) part(step int) art.SchedulePart {
	if s.steps == 0 {
		return art.SchedulePart{}
	}
	return art.SchedulePart{From: float64(step) / float64(s.steps), To: float64(step+1) / float64(s.steps)}
}
