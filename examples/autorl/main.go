// Command autorl trains a model for a task from a description of it, in this process.
//
// It is ART's AutoRL over package examples/agents/auto, on two tasks whose replies a rule can check:
//
//	autorl -task ticket -model FILE.gguf     # a complaint becomes a ticket with the fields product and urgency
//	autorl -task grammar -model FILE.gguf    # a sentence with a mistake, in tags, and the sentence without it
//
// The writer of the inputs and the judge of the replies stand in for a hosted language model, and live in this process:
// the writer fills templates, and the judge rates replies by parts of what was asked for, with noise. Neither costs
// anything, and nothing is downloaded. The command "art auto" does the same with language models as writer and judge,
// for any task.
//
// The judge alone gives the rewards. What came of it is measured by the rule, which training never sees: the share of
// held-out inputs that the base model and the trained model answer as asked, both greedily, and the difference with its
// confidence interval. The model must be able to follow an example, as SmolLM2-135M-Instruct is, and as the built-in
// one is not. Stop it at any time: run again, and it continues at the last step.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/track/terminal"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/agents/auto"
	"github.com/goart-dev/art/ruler"
)

type settings struct {
	task, base, dir     string
	seed                uint64
	steps, batch, group int
	inputs, held        int
	tokens              int
	rate                float64
	short               bool
}

func (s *settings) define(f *flag.FlagSet) {
	f.StringVar(&s.task, "task", "ticket", "ticket or grammar")
	f.StringVar(&s.base, "model", "", "base model: a folder, a GGUF file, or ORG/NAME on the hub")
	f.StringVar(&s.dir, "dir", ".art", "where runs are stored")
	f.Uint64Var(&s.seed, "seed", 1, "seed of the run, of the inputs and of the judge's noise")
	f.IntVar(&s.steps, "steps", 10, "training steps")
	f.IntVar(&s.batch, "batch", 4, "inputs of a step")
	f.IntVar(&s.group, "group", 8, "replies to an input")
	f.IntVar(&s.inputs, "inputs", 40, "inputs to train on")
	f.IntVar(&s.held, "measure", 150, "held-out inputs to compare with the base model on")
	f.IntVar(&s.tokens, "reply", 0, "most tokens of a reply; 0 is enough for the task")
	f.Float64Var(&s.rate, "rate", 0, "learning rate; 0 is that of the size of the model")
	f.BoolVar(&s.short, "short", false, "5 steps; fail unless the model is better by the rule after them")
}

func main() {
	var s settings
	s.define(flag.CommandLine)
	flag.Parse()
	if err := s.run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func (s *settings) run(ctx context.Context, out io.Writer) (err error) {
	if s.short {
		s.steps = 5
	}
	t, err := findTask(s.task)
	if err != nil {
		return err
	}
	if s.base == "" {
		return errors.New("-model is missing: take a small model that follows examples, such as SmolLM2-135M-Instruct")
	}
	fmt.Fprintln(out, "loading", s.base)
	backend, err := local.Open(ctx, &local.Options{Dir: s.dir, Context: 512})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	gains, err := s.train(ctx, t, backend, out)
	if err != nil {
		return err
	}
	if value, _, _ := gains[0].Interval(); s.short && value <= 0 {
		return fmt.Errorf("it did not learn: by the rule, %v", gains[0])
	}
	return nil
}

// train trains and prints what came of it. It returns the gain by each rule.
func (s *settings) train(ctx context.Context, t *task, backend art.Backend, out io.Writer) ([]agents.Gain, error) {
	p, err := s.project(ctx, t, backend, out)
	if err != nil {
		return nil, err
	}
	fmt.Fprint(out, p.Estimate())
	if p.Model.Step() >= s.steps {
		fmt.Fprintf(out, "The run is finished: it is at step %d of %d, and is compared once more. Train it further with "+
			"-steps %d, or begin another with -seed or -dir.\n", p.Model.Step(), s.steps, p.Model.Step()+10)
	}
	start := time.Now()
	result, err := p.Run(ctx)
	if err != nil {
		return nil, err
	}
	gains := t.gains(result)
	report(out, t, result, gains)
	fmt.Fprintf(out, "%v; page: %s\n", time.Since(start).Round(time.Second), p.Page())
	return gains, nil
}

// project is the task with its models: one that is trained, the same untrained, and the stand-ins.
func (s *settings) project(ctx context.Context, t *task, backend art.Backend, out io.Writer) (*auto.Project, error) {
	name := fmt.Sprintf("%s-%s-%d", t.name, strings.TrimSuffix(filepath.Base(s.base), ".gguf"), s.seed)
	options := art.ModelOptions{Project: "autorl", Base: s.base, Seed: s.seed,
		Chat: art.ChatOptions{Temperature: new(0.7)}} // as in ART; comparisons are greedy
	trained, frozen := options, options
	trained.Retention = &art.Retention{Newest: 1}
	frozen.Frozen = true
	standIn := func(kind string) *art.Model {
		return art.NewModel("stand-in-"+kind, &art.ModelOptions{Project: "autorl", Base: "rules", Frozen: true})
	}
	p := &auto.Project{
		Dir: filepath.Join(s.dir, "autorl", "projects", name), Task: t.text, Examples: t.examples,
		Model: art.NewModel(name, &trained), Base: art.NewModel(name+"-base", &frozen),
		Writer: standIn("writer"), Judge: standIn("judge"), JudgeOptions: ruler.Options{Chunk: max(2, s.group)},
		Inputs: s.inputs, Held: s.held, Steps: s.steps, Batch: s.batch, Group: s.group, Every: max(1, s.steps),
		MaxTokens: cmp.Or(s.tokens, t.tokens), Seed: s.seed,
		ConfigOf: func(int) *art.TrainConfig { // two updates, without weight decay
			return &art.TrainConfig{LearningRate: s.rate, MiniBatches: 2, MaxGradNorm: 1, WeightDecay: new(0.0)}
		},
		Events: terminal.New(&terminal.Options{Quiet: true}),
		Logger: agents.Logger(out),
	}
	if err := errors.Join(p.Model.Register(ctx, backend), p.Base.Register(ctx, backend)); err != nil {
		return nil, err
	}
	return p, errors.Join(
		p.Writer.Register(ctx, &standInBackend{reply: t.write(s.seed)}),
		p.Judge.Register(ctx, &standInBackend{reply: t.judge(s.seed)}))
}

func report(out io.Writer, t *task, r *auto.Result, gains []agents.Gain) {
	for i, g := range gains {
		fmt.Fprintf(out, "%s: %v\n", t.rules[i].name, g)
	}
	fmt.Fprintf(out, "by the judge: better %d, tied %d, worse %d of %d: win rate %.1f %% [%.1f, %.1f]\n", r.Wins, r.Ties,
		r.Losses, len(r.Samples), 100*r.WinRate, 100*r.Low, 100*r.High)
	if len(r.Samples) > 0 {
		sample := r.Samples[0]
		fmt.Fprintf(out, "for example %q\n  base:    %q\n  trained: %q\n", sample.Input, sample.Base, sample.Model)
	}
}
