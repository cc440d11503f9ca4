// Package frameworks is what the examples of agent frameworks have in common: the order desk of a shop, whose tools
// fail at random; scenarios with an exact checker; and a program that trains an agent and measures, in pairs, how much
// more the trained model solves.
//
// Each folder below is a program whose agent is written with one framework, as its users write them: it gets an HTTP
// client or a base URL, and nothing of it knows that it is trained. Those with dependencies of their own are modules:
//
//	go run -C examples/frameworks/eino . -steps 40 -seed 1
//	go run ./examples/frameworks/langgraph -python venv/bin/python -steps 40 -seed 1
package frameworks

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/backend/track/terminal"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/agents/mcp"
)

// Example is a program that trains the agent of a framework.
type Example struct {
	// Name of the framework, and of the runs.
	Name string
	// Play runs the agent.
	Play Play
	// Rollouts records over HTTP what agents in other processes do, and Start is called with the backend before the first
	// rollout. Both may be nil.
	Rollouts *server.Rollouts
	Start    func(ctx context.Context, s driver.HTTPServer) error
}

type settings struct {
	base, dir           string
	toolFormat          string
	seed                uint64
	steps, batch, group int
	every, count        int
	context, reply      int
	concurrency         int
	rate                float64
	faults              Faults
	short               bool
}

// Main is the program. It ends the process when it fails.
func Main(e *Example) {
	var s settings
	flag.StringVar(&s.base, "model", "tiny", "base model: a folder, a GGUF file, ORG/NAME on the hub, or tiny")
	flag.StringVar(&s.toolFormat, "tool-format", "", "format of tools for a model whose template has none, such as hermes")
	flag.Uint64Var(&s.seed, "seed", 1, "seed of the run, and of the shop's data")
	flag.StringVar(&s.dir, "dir", ".art", "where runs are stored")
	flag.IntVar(&s.steps, "steps", 40, "training steps")
	flag.IntVar(&s.batch, "batch", 8, "scenarios of a step")
	flag.IntVar(&s.group, "group", 8, "rollouts of a scenario")
	flag.IntVar(&s.every, "every", 10, "steps between validations")
	flag.IntVar(&s.count, "measure", 240, "scenarios of the comparison with the untrained model, at most")
	flag.Float64Var(&s.rate, "rate", 5e-4, "learning rate; from step 50 on it falls as 1/step")
	flag.Float64Var(&s.faults.Busy, "busy", 0.2, "share of the calls of tools that are told to try again")
	flag.Float64Var(&s.faults.Down, "down", 0, "share of the calls of tools that fail; most frameworks end the run then")
	flag.IntVar(&s.context, "context", 2048, "tokens of a rollout")
	flag.IntVar(&s.reply, "reply", 64, "tokens of a reply")
	flag.IntVar(&s.concurrency, "concurrency", 64, "rollouts at once")
	flag.BoolVar(&s.short, "short", false, "10 steps; fail unless the gain is positive with 95% confidence")
	flag.Parse()
	if err := s.run(context.Background(), e); err != nil {
		log.Fatal(err)
	}
}

func (s *settings) run(ctx context.Context, e *Example) (err error) {
	if s.short {
		s.steps = 10
	}
	b, err := local.Open(ctx, &local.Options{Dir: s.dir, Slots: 64, Context: s.context, Rollouts: e.Rollouts})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if e.Start != nil {
		if err := e.Start(ctx, b); err != nil {
			return err
		}
	}
	t, untrained, test, err := s.training(ctx, e, b)
	if err != nil {
		return err
	}
	outcome, err := t.Run(ctx)
	if err != nil {
		return err
	}
	fmt.Println("ended:", outcome.Why)
	gain, err := t.Gain(ctx, untrained, test)
	if err != nil {
		return err
	}
	fmt.Printf("%s, seed %d, step %d: %v\n", e.Name, s.seed, t.Model.Step(), gain)
	if _, low, _ := gain.Interval(); s.short && low <= 0 {
		return errors.New("it did not learn: the gain may be 0")
	}
	return nil
}

// training puts the training together, and returns the untrained model and the scenarios to compare with it.
func (s *settings) training(ctx context.Context, e *Example, b art.Backend) (
	t *agents.Training[mcp.Scenario], untrained *art.Model, test []mcp.Scenario, err error,
) {
	base := strings.TrimSuffix(filepath.Base(s.base), ".gguf")
	model := art.NewModel(fmt.Sprintf("%s-%s-%d", e.Name, base, s.seed), &art.ModelOptions{
		Project: "frameworks", Base: s.base, Seed: s.seed, LoRA: art.LoRA{Rank: 32},
		Retention: &art.Retention{Newest: 1, Best: "val/score"}, ToolFormat: s.toolFormat,
	})
	untrained = art.NewModel("untrained-"+model.Name(), &art.ModelOptions{
		Project: "frameworks", Base: s.base, Seed: s.seed, Frozen: true, ToolFormat: s.toolFormat,
	})
	for _, m := range []*art.Model{model, untrained} {
		if err := m.Register(ctx, b); err != nil {
			return nil, nil, nil, err
		}
	}
	t = &agents.Training[mcp.Scenario]{
		Model: model, Rollout: Rollout(e.Play, s.seed, s.faults), Checked: true,
		Steps: s.steps, Batch: s.batch, Group: s.group, Every: s.every, Seed: s.seed, Concurrency: s.concurrency,
		ConfigOf: agents.ConfigOf(s.rate), Chat: art.ChatOptions{MaxTokens: &s.reply},
		Events: terminal.New(&terminal.Options{Quiet: true}), Logger: slog.New(slog.NewTextHandler(os.Stdout, nil)),
	}
	t.Train, t.Val, test = Scenarios(s.seed)
	return t, untrained, test[:min(s.count, len(test))], nil
}
