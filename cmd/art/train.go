package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/track/terminal"
	"github.com/goart-dev/art/cmd/art/project"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/arithmetic/sums"
	"github.com/goart-dev/art/examples/tictactoe/game"
)

func init() {
	verbs["train"] = verb{
		summary: "train a run on a task by reinforcement learning",
		args:    "TASK BASE",
		runs:    true,
		text: `
Lets the model try scenarios of TASK, compares the tries by their rewards and reinforces the better
ones, step after step. Before, after and every so many steps between, scenarios are tried greedily,
and the fraction is printed that was solved.

` + taskList() + `
BASE is a folder, a GGUF file, ORG/NAME of the hub, or tiny, the built-in model. art init writes a
program that does the same for a task of your own.

Stop it at any time: run again, it goes on behind the last step. --steps counts all steps of the
run, so that a higher number trains it further.
` + trainedHelp,
		define: func(flags *flag.FlagSet) action {
			t := trainVerb{}
			flags.StringVar(&t.name, "run", "", "`name` of the run; default: the last part of BASE")
			flags.StringVar(&t.opts.Project, "project", "", "`project` of the run; default: TASK")
			flags.IntVar(&t.training.Steps, "steps", 0, "training steps of the whole run; 0 is those of the task")
			flags.IntVar(&t.training.Batch, "batch", 0, "`scenarios` of a step; 0 is those of the task")
			flags.IntVar(&t.training.Group, "group", 0, "`tries` of a scenario, at least 2; 0 is those of the task")
			flags.IntVar(&t.training.Every, "every", 10, "`steps` between evaluations")
			flags.IntVar(&t.training.Concurrency, "concurrency", 64, "tries at once")
			flags.Float64Var(&t.training.Goal.Value, "goal", 0, "stop when this `fraction` is solved, 0 to 1; 0 is never")
			flags.IntVar(&t.training.Goal.Patience, "patience", 0,
				"stop after so many `evaluations` without a gain; 0 is never")
			t.trained.define(flags)
			flags.Float64Var(&t.rate, "rate", 0,
				"learning rate, which falls from step 50 on; 0 is that of the size of the model")
			flags.Uint64Var(&t.opts.Seed, "seed", 0, "`seed` of the run")
			flags.IntVar(&t.keep, "keep", 0, "newest `steps` whose weights are kept; 0 is all")
			flags.StringVar(&t.local.Device, "device", "", deviceUsage)
			flags.StringVar(&t.local.Weights, "weights", "", weightsUsage)
			flags.StringVar(&t.local.Activations, "activations", "", activationsUsage)
			flags.IntVar(&t.local.Context, "context", 0,
				"most `tokens` of a conversation; 0 is that of the model, if it fits into memory")
			flags.IntVar(&t.maxTokens, "max-tokens", 0, "most `tokens` of a reply; 0 is those of the task")
			return t.run
		},
	}
}

// trainVerb is the verb train with its flags.
type trainVerb struct {
	name            string
	opts            art.ModelOptions
	trained         trainedFlags
	training        agents.Training[try]
	local           local.Options
	rate            float64
	keep, maxTokens int
}

func (t *trainVerb) run(args []string, stdout, stderr io.Writer) (err error) {
	if err := t.prepare(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	t.local.Dir, t.local.Progress, t.local.Logger = runsRoot(), stderr, warnings(stderr)
	backend, err := local.Open(ctx, &t.local)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	t.opts.Logger = t.local.Logger
	t.opts.Events = art.JoinEvents(terminal.New(&terminal.Options{Output: stderr, Quiet: true}), trainLines(stdout))
	m := art.NewModel(t.name, &t.opts)
	if err := m.Register(ctx, backend); err != nil {
		return err
	}
	if t.rate == 0 {
		if t.rate, err = backend.LearningRate(m); err != nil {
			return err
		}
	}
	t.training.Model, t.training.ConfigOf = m, agents.ConfigOf(t.rate)
	t.training.Seed, t.training.Events, t.training.Logger = t.opts.Seed, t.opts.Events, t.local.Logger
	began := m.Step()
	outcome, err := t.training.Run(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("stopped at step %d; run it again, and it goes on: %w", m.Step(), context.Cause(ctx))
	case err != nil:
		return err
	}
	dir, err := backend.Dir(m)
	if err != nil {
		return err
	}
	text := ""
	if m.Step() == began {
		text = fmt.Sprintf("the run is finished: it is at step %d", began)
		if began >= t.training.Steps {
			text += "; train it further with a higher --steps, or begin another with --run"
		}
		text += "\n"
	}
	first, last := outcome.Validations[0], outcome.Validations[len(outcome.Validations)-1]
	return write(stdout, fmt.Sprintf("%ssolved %.3f at step %d, %.3f at step %d: %s; the run is in %s\n", text,
		first.Score, first.Step, last.Score, last.Step, outcome.Why, dir))
}

// prepare checks the arguments and sets what the task leaves open.
func (t *trainVerb) prepare(args []string) error {
	if len(args) != 2 {
		return badUsage("want TASK and BASE; there are the tasks %s", strings.Join(sortedKeys(tasks), ", "))
	}
	task, ok := tasks[args[0]]
	if !ok {
		return badUsage("no task is called %q%s; there are %s", args[0], suggest("", args[0], sortedKeys(tasks)),
			strings.Join(sortedKeys(tasks), ", "))
	}
	tr := &t.training
	tr.Steps, tr.Batch, tr.Group = cmp.Or(tr.Steps, task.steps), cmp.Or(tr.Batch, task.batch), cmp.Or(tr.Group, task.group)
	t.maxTokens = cmp.Or(t.maxTokens, task.maxTokens)
	switch {
	case tr.Steps < 1 || tr.Batch < 1 || tr.Every < 1 || tr.Concurrency < 1 || t.maxTokens < 1:
		return badUsage("want --steps, --batch, --every, --concurrency and --max-tokens of at least 1")
	case tr.Group < 2:
		return badUsage("--group %d: want at least 2, because tries are compared", tr.Group)
	case !(tr.Goal.Value >= 0 && tr.Goal.Value <= 1) || tr.Goal.Patience < 0 || t.keep < 0 || !(t.rate >= 0):
		return badUsage("want a --goal of 0 to 1, and --patience, --keep and --rate of 0 or more")
	case t.keep > 0:
		t.opts.Retention = &art.Retention{Newest: t.keep, Best: "val/score"}
	}
	if err := t.trained.set(&t.opts); err != nil {
		return err
	}
	t.opts.Base, t.opts.Project = args[1], cmp.Or(t.opts.Project, args[0])
	t.name = cmp.Or(t.name, strings.TrimSuffix(filepath.Base(args[1]), ".gguf"))
	tr.Train, tr.Val, tr.Chat.MaxTokens, tr.Checked = task.train, task.val, &t.maxTokens, true
	tr.Rollout = func(m *art.Model, opts *art.ChatOptions) func(context.Context, try) (*art.Trajectory, error) {
		return func(ctx context.Context, s try) (*art.Trajectory, error) { return s.roll(ctx, m, opts) }
	}
	return nil
}

// trainLines prints a line for each step and each evaluation.
func trainLines(stdout io.Writer) *art.Events {
	return &art.Events{Log: func(e art.LogEvent) {
		line := fmt.Sprintf("step %3d  reward %6.3f  solved %3.0f%%\n", e.Step, e.Metrics["train/reward"],
			100*e.Metrics["train/solved"])
		if e.Split == "val" {
			line = fmt.Sprintf("greedy at step %d: %.0f%% of %.0f solved\n", e.Step, 100*e.Metrics["val/score"],
				e.Metrics["val/scenarios"])
		}
		_ = write(stdout, line) // a lost line of progress ends no training
	}}
}

// taskList is the part of the help about the tasks.
func taskList() string {
	var b strings.Builder
	for _, name := range sortedKeys(tasks) {
		fmt.Fprintf(&b, "  %-11s %s\n", name, tasks[name].summary)
	}
	return b.String()
}

// task is what a model can be trained for by name: scenarios with a reward, and settings with which the built-in model
// learns it in a minute or a few.
type task struct {
	summary                        string // one line
	train, val                     []try  // scenarios to train on and to evaluate with
	steps, batch, group, maxTokens int
}

// tasks by name.
var tasks = newTasks()

func newTasks() map[string]task {
	known, unseen := sums.Split()
	sides, measured := []bool{true, false, true, false}, slices.Repeat([]bool{true, false}, 50)
	return map[string]task{
		"arithmetic": {
			"sums of two digits; a quarter is held out",
			tries(known, "right", sums.Ask), tries(unseen, "right", sums.Ask), 60, 16, 8, 8,
		},
		"tictactoe": {
			"a game against an opponent that wins where it can; not to lose is to solve it",
			tries(sides, "not_lost", playing(game.Sharp)), tries(measured, "not_lost", playing(game.Random)), 200, 4, 32, 4,
		},
		"words": {
			"the task of art init: the best of three words, in a few steps",
			tries(project.Questions, "right", project.Answer), tries(project.Questions, "right", project.Answer), 10, 4, 16, 8,
		},
	}
}

// rollout plays a scenario.
type rollout[S any] = func(context.Context, *art.Model, S, *art.ChatOptions) (*art.Trajectory, error)

// playing returns the rollout of a game against an opponent.
func playing(opponent func(intn func(int) int) game.Opponent) rollout[bool] {
	return func(ctx context.Context, m *art.Model, first bool, opts *art.ChatOptions) (*art.Trajectory, error) {
		return game.Play(ctx, m, first, opponent(art.Rand(ctx).IntN), opts)
	}
}

// try is a scenario with its rollout.
type try struct {
	name string
	roll func(context.Context, *art.Model, *art.ChatOptions) (*art.Trajectory, error)
}

// String is the scenario, for messages.
func (t try) String() string { return t.name }

// tries binds scenarios to a rollout. solved is its metric that is 1 for a scenario that is solved, and 0 otherwise.
func tries[S any](scenarios []S, solved string, roll rollout[S]) []try {
	list := make([]try, len(scenarios))
	for i, s := range scenarios {
		list[i] = try{fmt.Sprint(s), func(ctx context.Context, m *art.Model, o *art.ChatOptions) (*art.Trajectory, error) {
			t, err := roll(ctx, m, s, o)
			if err == nil {
				t.Metrics["solved"] = t.Metrics[solved]
			}
			return t, err
		}}
	}
	return list
}
