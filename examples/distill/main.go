// Command distill moves a prompt into the weights of a small model, and then makes the model better than the prompt:
//
//	distill -model SmolLM2-135M-Instruct.Q4_1.gguf                    # the teacher is the same model, with a prompt
//	distill -model FILE.gguf -teacher MODEL@URL                       # the teacher is behind an OpenAI-compatible API
//
// The task is to turn a request for a trip into JSON. The teacher has a prompt with the task and three examples, the
// student sees the bare request. First the teacher answers requests, and its replies that a rule finds right are what
// the student learns from, in one supervised step: rejection sampling and prompt distillation. Then the student goes on
// by reinforcement learning, rewarded by the same rule, and can get better than its teacher.
//
// Printed is the share of held-out requests that are answered as asked, by each of them, and the difference with its
// confidence interval. Stop it at any time: run again, and it continues at the last step.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/backend/track/terminal"
	"github.com/goart-dev/art/examples/agents"
)

type settings struct {
	base, teacher, dir string
	seed               uint64
	demos, epochs      int
	steps              int
	batch, group       int
	held               int
	tokens             int
	sftRate, rate      float64
	short              bool
}

func (s *settings) define(f *flag.FlagSet) {
	f.StringVar(&s.base, "model", "", "base model of the student: a folder, a GGUF file, or ORG/NAME on the hub")
	f.StringVar(&s.teacher, "teacher", "", "MODEL@URL; empty is the base model with the prompt")
	f.StringVar(&s.dir, "dir", ".art", "where runs are stored")
	f.Uint64Var(&s.seed, "seed", 1, "seed of the run and of the requests")
	f.IntVar(&s.demos, "demos", 200, "requests that the teacher answers")
	f.IntVar(&s.epochs, "epochs", 4, "passes of the supervised step over the teacher's right replies")
	f.IntVar(&s.steps, "steps", 11, "training steps, of which the first is the supervised one")
	f.IntVar(&s.batch, "batch", 8, "requests of a step")
	f.IntVar(&s.group, "group", 8, "replies to a request")
	f.IntVar(&s.held, "measure", 200, "held-out requests")
	f.IntVar(&s.tokens, "reply", 40, "most tokens of a reply")
	f.Float64Var(&s.sftRate, "sft-rate", 1e-3, "learning rate of the supervised step; 0 is that of the size of the model")
	f.Float64Var(&s.rate, "rate", 0, "learning rate of reinforcement learning; 0 is that of the size of the model")
	f.BoolVar(&s.short, "short", false, "5 steps; fail unless more requests are answered as asked after them")
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
	start := time.Now()
	m, err := s.open(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	t := &agents.Training[trip]{
		Model: m.student, Rollout: m.ask, Checked: true,
		Train: trips(max(s.demos, 1), false, s.seed), Val: trips(s.held, true, s.seed),
		Steps: s.steps, Batch: s.batch, Group: s.group, Every: 5, Seed: s.seed, Concurrency: 32,
		ConfigOf: func(int) *art.TrainConfig {
			return &art.TrainConfig{LearningRate: s.rate, MiniBatches: 2, MaxGradNorm: 1, WeightDecay: new(0.0)}
		},
		Chat:   art.ChatOptions{MaxTokens: &s.tokens},
		Events: terminal.New(&terminal.Options{Quiet: true}),
		Logger: agents.Logger(out),
	}
	if err := s.distill(ctx, t, m.teacher, out); err != nil {
		return err
	}
	first := *t // validates the student after the supervised step alone
	first.Steps = min(1, s.steps)
	if _, err := first.Run(ctx); err != nil {
		return err
	}
	outcome, err := t.Run(ctx)
	if err != nil {
		return err
	}
	over, err := s.report(ctx, t, m, outcome, out)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "time:", time.Since(start).Round(time.Second))
	if value, _, _ := over.Interval(); s.short && value <= 0 {
		return fmt.Errorf("it did not learn: %v", over)
	}
	return nil
}

// distill has the teacher show how, in the first step of a run.
func (s *settings) distill(ctx context.Context, t *agents.Training[trip], teacher *art.Model, out io.Writer) error {
	if t.Model.Step() > 0 || s.demos == 0 {
		return nil
	}
	d, err := t.Distill(ctx, teacher, s.demos, nil, &art.SFTConfig{
		LearningRate: s.sftRate, BatchSize: 16, Epochs: s.epochs, Seed: s.seed,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the teacher is right in %d of %d requests: the student learns from these\n", d.Kept, d.Rollouts)
	return nil
}

// report prints the shares of all four, and draws the curve. It returns what the student gained over the base model.
func (s *settings) report(
	ctx context.Context, t *agents.Training[trip], m *models, outcome *agents.Outcome, out io.Writer,
) (overBase agents.Gain, err error) {
	if overBase, err = t.Gain(ctx, m.base, t.Val); err != nil {
		return overBase, err
	}
	overTeacher, err := t.Gain(ctx, m.teacher, t.Val)
	if err != nil {
		return overBase, err
	}
	base, _ := overBase.Shares()
	teacher, student := overTeacher.Shares()
	fmt.Fprintf(out, "held-out requests that are answered as asked, greedily, of %d:\n", len(t.Val))
	fmt.Fprintf(out, "  base model, bare request:      %5.1f %%\n", 100*base)
	fmt.Fprintf(out, "  teacher, with its prompt:      %5.1f %%\n", 100*teacher)
	for _, v := range outcome.Validations {
		if v.Step == 1 {
			fmt.Fprintf(out, "  student after distillation:    %5.1f %%\n", 100*v.Score)
		}
	}
	fmt.Fprintf(out, "  student after step %-3d         %5.1f %%\n", t.Model.Step(), 100*student)
	fmt.Fprintf(out, "student and base model: %v\nstudent and teacher: %v\n", overBase, overTeacher)
	return overBase, s.draw(ctx, m, out)
}

func (s *settings) draw(ctx context.Context, m *models, out io.Writer) error {
	dir, err := m.backend.Dir(m.student)
	if err != nil {
		return err
	}
	rows, err := m.backend.History(ctx, m.student)
	if err != nil {
		return err
	}
	curves := filepath.Join(dir, "reward.svg")
	fmt.Fprintln(out, "curves:", curves)
	return plot.Save(curves, &plot.Chart{Title: "Distillation, then RL", Y: "answered as asked", Percent: true,
		Series: []plot.Series{
			{Name: "training", Points: plot.History(rows, "train/solved"), Smooth: true},
			{Name: "greedy, on held-out requests", Points: plot.History(rows, "val/score")},
		}})
}
