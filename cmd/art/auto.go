package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/openai"
	"github.com/goart-dev/art/examples/agents/auto"
	"github.com/goart-dev/art/model/tiny"
)

func init() {
	verbs["auto"] = verb{
		summary: "train a model for a task that is described in words",
		args:    "TASK",
		runs:    true,
		text: `
Trains a model from the description of a task alone: TASK is a sentence or a few, in quotes. A
writer writes inputs, a system prompt and a rubric; replies to an input are compared by a judge and
reinforced. The result is a page: how often the trained model beats the base model on inputs that
were held out, judged in both orders, with replies side by side.

Writer and judge are the base model unless others are named, as MODEL@URL of any service that is
compatible with OpenAI's, such as gpt-5.4-mini@https://api.openai.com/v1; its key is in
OPENAI_API_KEY. A small model is a poor judge of itself: the page says so.

What it takes is printed first; --estimate prints nothing else. Stop it at any time: run again, it
goes on where it was.
` + trainedHelp,
		define: func(flags *flag.FlagSet) action {
			a := autoVerb{}
			flags.StringVar(&a.base, "model", "tiny", "base `model`: a folder, a GGUF file, ORG/NAME, or tiny")
			flags.StringVar(&a.name, "run", "", "`name` of the run; the first words of the task otherwise")
			flags.StringVar(&a.writer, "writer", "base", "`MODEL@URL` that writes inputs and rubric, or base")
			flags.StringVar(&a.judge, "judge", "base", "`MODEL@URL` that compares replies, or base")
			flags.IntVar(&a.p.Inputs, "inputs", 25, "`inputs` to train on")
			flags.IntVar(&a.p.Held, "held", 30, "`inputs` to compare with the base model on")
			flags.StringVar(&a.p.System, "system", "", "system `prompt`, in place of the writer's")
			flags.StringVar(&a.p.Rubric, "rubric", "", "`rubric`, in place of the writer's")
			flags.IntVar(&a.p.Steps, "steps", 40, "training steps")
			flags.IntVar(&a.p.Batch, "batch", 2, "`inputs` of a step")
			flags.IntVar(&a.p.Group, "group", 4, "`replies` to an input")
			flags.IntVar(&a.p.Every, "every", 10, "`steps` between comparisons")
			flags.Float64Var(&a.p.Goal.Value, "goal", 0, "stop at this `win rate`, 0 to 1; 0 is never")
			flags.IntVar(&a.p.Goal.Patience, "patience", 0, "stop after so many `comparisons` without a gain; 0 is never")
			flags.Float64Var(&a.p.MinSpread, "spread", 0.2, "least spread of the inputs, 0 to 1")
			flags.IntVar(&a.p.MaxTokens, "max-tokens", 256, "most `tokens` of a reply")
			flags.IntVar(&a.context, "context", 0,
				"most `tokens` of a conversation; 0 is that of the model, if it fits into memory")
			a.trained.define(flags)
			flags.Float64Var(&a.rate, "rate", 0, "learning rate; 0 is that of the size of the model")
			flags.Uint64Var(&a.p.Seed, "seed", 0, "`seed` of the run")
			flags.BoolVar(&a.estimate, "estimate", false, "print what it takes, and stop")
			return a.run
		},
	}
}

// autoVerb is the verb auto with its flags.
type autoVerb struct {
	base, name, writer, judge string
	context                   int
	rate                      float64
	estimate                  bool
	trained                   trainedFlags
	p                         auto.Project
	closers                   []func() error
}

func (a *autoVerb) run(args []string, stdout, stderr io.Writer) (err error) {
	if len(args) != 1 {
		return badUsage("want the TASK, in quotes")
	}
	opts := &art.ModelOptions{Project: "auto", Base: a.base, Seed: a.p.Seed,
		Retention: &art.Retention{Newest: 1, Best: "val/score"}}
	if err := a.trained.set(opts); err != nil {
		return err
	}
	if a.base == tiny.Name && !a.estimate && (a.writer == "base" || a.judge == "base") {
		return badUsage("the built-in model can neither write inputs nor judge: name a base model that follows " +
			"instructions with --model, or a --writer and a --judge")
	}
	p := &a.p
	p.Task = args[0]
	a.name = cmp.Or(a.name, slug(p.Task))
	p.Dir = filepath.Join(runsRoot(), "auto", "projects", a.name)
	p.Prices = auto.Prices{Writer: priceOf(a.writer), Judge: priceOf(a.judge)}
	if err := write(stdout, p.Estimate().String()); err != nil || a.estimate {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	defer func() {
		for _, f := range a.closers {
			err = errors.Join(err, f())
		}
	}()
	if err := a.open(ctx, opts, stderr); err != nil {
		return err
	}
	p.Events = liveLine(stderr)
	p.Logger = slog.New(slog.NewTextHandler(stderr, nil))
	p.ConfigOf = func(int) *art.TrainConfig { return &art.TrainConfig{LearningRate: a.rate} }
	result, err := p.Run(ctx)
	if err != nil {
		return err
	}
	return write(stdout, fmt.Sprintf("better %d, tied %d, worse %d of %d: win rate %.1f %% (95 %%: %.1f to %.1f)\n%s\n",
		result.Wins, result.Ties, result.Losses, len(result.Samples), 100*result.WinRate, 100*result.Low, 100*result.High,
		p.Page()))
}

// open registers the models. opts are those of the one that is trained.
func (a *autoVerb) open(ctx context.Context, opts *art.ModelOptions, stderr io.Writer) error {
	b, err := local.Open(ctx, &local.Options{
		Dir: runsRoot(), Progress: stderr, Logger: warnings(stderr), Context: a.context,
	})
	if err != nil {
		return err
	}
	a.closers = append(a.closers, b.Close)
	p := &a.p
	p.Model = art.NewModel(a.name, opts)
	p.Base = art.NewModel(a.name+"-base", &art.ModelOptions{Project: "auto", Base: a.base, Seed: p.Seed, Frozen: true})
	for _, m := range []*art.Model{p.Model, p.Base} {
		if err := m.Register(ctx, b); err != nil {
			return err
		}
	}
	if p.Writer, err = a.find(ctx, "writer", a.writer); err != nil {
		return err
	}
	if a.judge == a.writer {
		p.Judge = p.Writer
	} else if p.Judge, err = a.find(ctx, "judge", a.judge); err != nil {
		return err
	}
	if p.Judge == p.Base { // it answers in the form that is asked for only when nothing else is possible
		p.JudgeOptions.Structured, p.JudgeOptions.Context = true, a.context
	}
	p.JudgeOptions.Cache = filepath.Join(p.Dir, "judge")
	return nil
}

// find returns the model of a flag.
func (a *autoVerb) find(ctx context.Context, flag, value string) (*art.Model, error) {
	if value == "base" {
		return a.p.Base, nil
	}
	name, url, ok := strings.Cut(value, "@")
	if !ok {
		return nil, badUsage("--%s %s: want base or MODEL@URL", flag, value)
	}
	b, err := openai.Open(ctx, &openai.Options{BaseURL: url, Dir: runsRoot()})
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, b.Close)
	m := art.NewModel("hosted-"+slug(name), &art.ModelOptions{Project: "auto", Base: name, Frozen: true})
	return m, m.Register(ctx, b)
}

// priceOf is the list price of a hosted model, nothing for one that has none.
func priceOf(value string) auto.Price {
	name, _, _ := strings.Cut(value, "@")
	price := openai.DefaultPrices()[name]
	return auto.Price{Prompt: price.Prompt, Completion: price.Completion}
}

// slug makes a name of the first words of a text.
func slug(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	if len(words) == 0 {
		return "task"
	}
	return strings.Join(words[:min(5, len(words))], "-")
}
