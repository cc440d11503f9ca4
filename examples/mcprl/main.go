// Command mcprl trains an agent for the tools of an MCP server, in this process: go run ./examples/mcprl
//
// Give it the address of a server, a command that starts one, or the name of one of the two that come with it, orders
// and calendar, whose data is made up and whose scenarios have an exact checker:
//
//	mcprl -server orders
//	mcprl -server https://example.com/mcp -model SmolLM2-135M.gguf -generator gpt-5.4-mini@https://api.openai.com/v1 \
//		-judge gpt-5.4-mini@https://api.openai.com/v1
//	mcprl -server "npx some-mcp-server" -judge base
//
// For other servers scenarios are written by a model, the base itself unless -generator names another, and stored in
// the folder of the run; a judge gives the rewards, and validation compares with the base model in pairs, in both
// orders. Stop it at any time: run again, and it continues at the last step. "mcprl -serve calendar" is that server on
// standard input and output, for other programs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/backend/track/terminal"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/agents/mcp"
	"github.com/goart-dev/art/examples/agents/mcp/synthetic"
	"github.com/goart-dev/art/internal/quantity"
)

type settings struct {
	server, base, dir         string
	toolFormat                string
	generator, judge, control string
	teacher                   string
	demos                     int
	seed                      uint64
	steps, batch, group       int
	count, scenarios, every   int
	turns, result, context    int
	reply                     int
	level, concurrency        int
	rate, goal, temperature   float64
	patience                  int
	text, short               bool
}

func (s *settings) define(f *flag.FlagSet) {
	f.StringVar(&s.server, "server", "orders", "orders, calendar, the URL of an MCP server, or a command that starts one")
	f.StringVar(&s.base, "model", "tiny", "base model: a folder, a GGUF file, ORG/NAME on the hub, or tiny")
	f.StringVar(&s.toolFormat, "tool-format", "", "format of tools for a model whose template has none, such as hermes")
	f.Uint64Var(&s.seed, "seed", 1, "seed of the run, and of the data of orders and calendar")
	f.StringVar(&s.dir, "dir", ".art", "where runs are stored")
	f.IntVar(&s.steps, "steps", 60, "training steps")
	f.IntVar(&s.batch, "batch", 8, "scenarios of a step")
	f.IntVar(&s.group, "group", 16, "rollouts of a scenario")
	f.IntVar(&s.count, "measure", 150, "scenarios to validate with, at most")
	f.Float64Var(&s.rate, "rate", 5e-4, "learning rate; from step 50 on it falls as 1/step")
	f.IntVar(&s.every, "every", 10, "steps between validations")
	f.IntVar(&s.level, "level", 1, "difficulty of the scenarios of orders and calendar: 1 or 2 calls")
	f.IntVar(&s.scenarios, "scenarios", 24, "scenarios to generate for other servers")
	f.StringVar(&s.generator, "generator", "base", "who writes scenarios: base, or MODEL@URL")
	f.StringVar(&s.judge, "judge", "",
		"who gives rewards: empty is the checker of orders and calendar; noisy, base, or MODEL@URL")
	f.StringVar(&s.control, "control", "",
		"whom validations compare with: base or MODEL@URL; base where a judge gives rewards")
	f.StringVar(&s.teacher, "teacher", "", "MODEL@URL that shows how in a first, supervised step: distillation before RL")
	f.IntVar(&s.demos, "demos", 200, "scenarios that the teacher works on")
	f.Float64Var(&s.goal, "goal", 0, "stop when validation reaches this score; 0 is never")
	f.IntVar(&s.patience, "patience", 0, "stop after so many validations without an improvement; 0 is never")
	f.IntVar(&s.turns, "turns", 6, "replies of a rollout")
	f.IntVar(&s.result, "result", 400, "characters of a tool's result that the model sees")
	f.IntVar(&s.reply, "reply", 64, "tokens of a reply")
	f.IntVar(&s.context, "context", 2048, "tokens of a rollout")
	f.IntVar(&s.concurrency, "concurrency", 64, "rollouts, and sessions, at once")
	f.Float64Var(&s.temperature, "temperature", 1,
		"of rollouts; above 1 they differ more, so that a model that is sure of what is wrong finds what is right")
	f.BoolVar(&s.text, "text", true, "a reply without a call ends the task as its answer; else only complete_task does")
	f.BoolVar(&s.short, "short", false, "10 steps; fail unless the validation is better after them")
}

func main() {
	var s settings
	s.define(flag.CommandLine)
	serve := flag.String("serve", "", "be the server orders or calendar on standard input and output")
	flag.Parse()
	ctx := context.Background()
	var err error
	if d, ok := synthetic.Find(*serve); ok {
		err = d.Serve(s.seed).Run(ctx, &sdk.StdioTransport{})
	} else if *serve != "" {
		err = fmt.Errorf("-serve %s: there are orders and calendar", *serve)
	} else {
		err = run(ctx, &s)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, s *settings) (err error) {
	if s.short {
		s.steps = 10
	}
	models := &models{settings: s}
	defer func() { err = errors.Join(err, models.close()) }()
	fmt.Printf("loading %s, then measuring it\n", s.base)
	t, err := newTraining(ctx, s, models)
	if err != nil {
		return err
	}
	began := t.Model.Step()
	if began >= s.steps {
		fmt.Printf("The run is finished: it is at step %d of %d. Train it further with -steps %d and without -short, "+
			"or begin another with -seed or -dir.\n", began, s.steps, began+50)
	}
	if err := s.learnFrom(ctx, t, models); err != nil {
		return err
	}
	outcome, err := t.Run(ctx)
	if err != nil {
		return err
	}
	fmt.Println("ended:", outcome.Why)
	report(outcome)
	if err := draw(ctx, models, t.Model); err != nil {
		return err
	}
	v := outcome.Validations
	if s.short && began < s.steps && v[len(v)-1].Score <= v[0].Score {
		return fmt.Errorf("it did not learn: validation %.3f, then %.3f", v[0].Score, v[len(v)-1].Score)
	}
	return nil
}

func newTraining(ctx context.Context, s *settings, m *models) (*agents.Training[mcp.Scenario], error) {
	logger := agents.Logger(os.Stdout)
	server, domain, err := s.open()
	if err != nil {
		return nil, err
	}
	about, err := server.Describe(ctx)
	if err != nil {
		return nil, err
	}
	model, err := m.trained(ctx)
	if err != nil {
		return nil, err
	}
	agent := &mcp.Agent{Server: server, Known: about, MaxTurns: s.turns, Resources: domain == nil, TextCompletes: s.text}
	t := &agents.Training[mcp.Scenario]{
		Model: model, Rollout: agent.Rollout, Checked: domain != nil,
		Steps: s.steps, Batch: s.batch, Group: s.group, Every: s.every, Seed: s.seed, Concurrency: s.concurrency,
		Goal: agents.Goal{Value: s.goal, Patience: s.patience}, ConfigOf: agents.ConfigOf(s.rate), Logger: logger,
		Events: terminal.New(&terminal.Options{Quiet: true}),
		Chat:   art.ChatOptions{MaxTokens: &s.reply, Temperature: &s.temperature},
	}
	if t.Train, t.Val, err = s.tasks(ctx, m, about, domain, logger); err != nil {
		return nil, err
	}
	t.Val = t.Val[:min(s.count, len(t.Val))]
	if domain != nil {
		agent.Check = domain.Checker(s.seed)
	}
	return t, s.judges(ctx, t, m, logger)
}

// open returns the server, and its domain when it is one of ours: orders in this process, calendar as a command.
func (s *settings) open() (*mcp.Server, *synthetic.Domain, error) {
	opts := &mcp.Options{MaxResult: s.result}
	d, ok := synthetic.Find(s.server)
	if !ok {
		server, err := mcp.Open(s.server, opts)
		return server, nil, err
	}
	if s.level < 1 || s.level > 2 {
		return nil, nil, fmt.Errorf("-level is %d, want 1 or 2", s.level)
	}
	if d.Name == synthetic.Orders.Name {
		return mcp.InProcess(d.Name, func() *sdk.Server { return d.Serve(s.seed) }, opts), &d, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	server, err := mcp.Command(opts, self, "-serve", d.Name, "-seed", fmt.Sprint(s.seed))
	return server, &d, err
}

func report(outcome *agents.Outcome) {
	for _, v := range outcome.Validations {
		fmt.Printf("validation at step %3d: %.3f of %s", v.Step, v.Score, quantity.Of(v.Scenarios, "scenario"))
		if v.Failures > 0 {
			fmt.Printf(", %s", quantity.Of(v.Failures, "failed rollout"))
		}
		if v.Tally != nil {
			fmt.Printf(", against the control %v", v.Tally)
		}
		fmt.Println()
	}
}

func draw(ctx context.Context, m *models, model *art.Model) error {
	dir, err := m.backend.Dir(model)
	if err != nil {
		return err
	}
	rows, err := m.backend.History(ctx, model)
	if err != nil {
		return err
	}
	curves := filepath.Join(dir, "reward.svg")
	fmt.Println("curves:", curves)
	return plot.Save(curves, &plot.Chart{Title: "MCP-RL", Y: "score", Series: []plot.Series{
		{Name: "reward, training", Points: plot.History(rows, "train/reward"), Smooth: true},
		{Name: "validation", Points: plot.History(rows, "val/score")},
	}})
}
