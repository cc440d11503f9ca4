// Package learning is a suite of tasks that the built-in model has to learn within given steps: does training work,
// from the rewards of a rollout to what the model does on scenarios that it has not seen? Each task has a measure, a
// number of steps and an aim.
//
//	go run ./internal/dev/cmd/learning -seeds 3     # all tasks; prints the table of docs/learning.md
package learning

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/local"
)

// Task is something to learn.
type Task struct {
	Name    string
	What    string // is done, and rewarded
	Measure string // what the value is
	Steps   int    // within which the aim is to be reached
	Every   int    // steps between two measurements
	Aim     Aim
	Low     bool // lower values are better

	Context   int          // tokens of a conversation
	MaxTokens int          // of a reply
	Rank      int          // of the adapter; 0 is the default
	Start     func() Agent // begins a run
}

// Agent is a task in one run.
type Agent interface {
	// Groups runs the rollouts of a step.
	Groups(ctx context.Context, m *art.Model, step int) ([]*art.TrajectoryGroup, error)
	// Config is that of the training of a step.
	Config(step int) *art.TrainConfig
	// Measure returns metrics of the current policy, among them the value of the task under "value".
	Measure(ctx context.Context, m *art.Model) (map[string]float64, error)
}

// Shower is an agent whose first step may be a supervised one: it shows replies among which the right one is as likely
// as others. A policy that is sure of a wrong reply has groups without variance, and learns nothing of them.
type Shower interface {
	// Show returns the chats of the first step. None make it a step like the others.
	Show() ([]*art.Trajectory, *art.SFTConfig)
}

// Aim says when a task is learned.
type Aim struct {
	Text    string
	Reached func(curve []Point) bool
}

// AtLeast is the aim of a value that is reached at any measurement.
func AtLeast(value float64) Aim {
	return Aim{fmt.Sprintf("at least %g", value), func(curve []Point) bool {
		return slices.ContainsFunc(curve, func(p Point) bool { return p.Value >= value })
	}}
}

// AtMost is the aim of a value that is low at the end.
func AtMost(value float64) Aim {
	return Aim{fmt.Sprintf("at most %g at the end", value), func(curve []Point) bool {
		return len(curve) > 0 && curve[len(curve)-1].Value <= value
	}}
}

// NeverFalls is the aim of a value that stays within so much of its best one up to then.
func NeverFalls(by float64) Aim {
	return Aim{fmt.Sprintf("never %g below its best", by), func(curve []Point) bool {
		return len(curve) > 1 && Fall(curve) < by
	}}
}

// Point is a measurement.
type Point struct {
	Step  int     `json:"step"`
	Value float64 `json:"value"`
}

// Fall is the most by which a value lies below the best before it.
func Fall(curve []Point) float64 {
	best, fall := math.Inf(-1), 0.0
	for _, p := range curve {
		best = max(best, p.Value)
		fall = max(fall, best-p.Value)
	}
	return fall
}

// Options of [Run].
type Options struct {
	Dir  string // of the runs
	Seed uint64
	// Steps overrides those of the task; 0 does not.
	Steps int
	// Shown bounds the number of chats of a supervised first step; 0 does not.
	Shown int
	// Report is called after each measurement. May be nil.
	Report func(task *Task, p Point)
}

// Result is how a run went.
type Result struct {
	Task    string  `json:"task"`
	Seed    uint64  `json:"seed"`
	Steps   int     `json:"steps"`
	Curve   []Point `json:"curve"`
	Seconds float64 `json:"seconds"` // of all processes that the run took
	Reached bool    `json:"reached"`
}

// Run trains on a task, and measures. A run in Dir that was interrupted continues.
func Run(ctx context.Context, task *Task, o Options) (*Result, error) {
	b, err := local.Open(ctx, &local.Options{Dir: o.Dir, Slots: 64, Context: task.Context})
	if err != nil {
		return nil, err
	}
	defer b.Close()
	m := art.NewModel(fmt.Sprintf("%s-%d", task.Name, o.Seed), &art.ModelOptions{
		Project: "learning", Seed: o.Seed, LoRA: art.LoRA{Rank: task.Rank},
		Chat: art.ChatOptions{MaxTokens: &task.MaxTokens}, Retention: &art.Retention{},
	})
	if err := m.Register(ctx, b); err != nil {
		return nil, err
	}
	steps := task.Steps
	if o.Steps > 0 {
		steps = o.Steps
	}
	agent := task.Start()
	for {
		if err := measure(ctx, task, agent, m, steps, o.Report); err != nil {
			return nil, err
		}
		if m.Step() >= steps {
			break
		}
		if err := train(ctx, agent, m, o.Shown); err != nil {
			return nil, err
		}
	}
	return result(ctx, task, b, m, o.Seed)
}

// train makes a step.
func train(ctx context.Context, agent Agent, m *art.Model, bound int) error {
	if s, ok := agent.(Shower); ok && m.Step() == 0 {
		if chats, cfg := s.Show(); len(chats) > 0 {
			_, err := m.TrainSFT(ctx, chats[:min(len(chats), cmp.Or(bound, len(chats)))], cfg)
			return err
		}
	}
	groups, err := agent.Groups(ctx, m, m.Step())
	if err != nil {
		return err
	}
	_, err = m.Train(ctx, groups, agent.Config(m.Step()))
	return err
}

// measure measures the current step when it is due and not logged yet. It is due after a supervised step, too.
func measure(
	ctx context.Context, task *Task, agent Agent, m *art.Model, steps int, report func(*Task, Point),
) error {
	_, shows := agent.(Shower)
	due := m.Step()%task.Every == 0 || m.Step() >= steps || shows && m.Step() == 1
	if !due {
		return nil
	}
	rows, err := m.Backend().(driver.CheckpointKeeper).History(ctx, m)
	if err != nil {
		return err
	}
	if _, done := art.Logged(rows, "val/value", m.Step()); done {
		return nil
	}
	metrics, err := agent.Measure(ctx, m)
	if err != nil {
		return err
	}
	if report != nil {
		report(task, Point{m.Step(), metrics["value"]})
	}
	return m.Log(ctx, "val", nil, metrics)
}

// result reads the curve of a run.
func result(ctx context.Context, task *Task, b *local.Backend, m *art.Model, seed uint64) (*Result, error) {
	rows, err := b.History(ctx, m)
	if err != nil {
		return nil, err
	}
	r := &Result{Task: task.Name, Seed: seed, Steps: m.Step()}
	for _, row := range rows {
		if value, ok := row.Metrics["val/value"]; ok {
			r.Curve = append(r.Curve, Point{row.Step, value})
		}
		if sum, ok := row.Metrics["time/cum/step_wall_s"]; ok {
			r.Seconds = max(r.Seconds, sum)
		}
	}
	r.Reached = task.Aim.Reached(r.Curve)
	return r, nil
}

// gather runs rollouts of all scenarios of a step, in groups of a size.
func gather[S any](
	ctx context.Context, scenarios []S, size, step int, rollout func(context.Context, S) (*art.Trajectory, error),
) ([]*art.TrajectoryGroup, error) {
	return art.GatherGroups(ctx, scenarios, rollout,
		&art.GatherOptions{GroupSize: size, Concurrency: 64, Seed: uint64(step), Timeout: 10 * time.Minute})
}

// average runs each scenario once, and returns the mean of their metrics. It has seeds that no step has.
func average[S any](
	ctx context.Context, scenarios []S, rollout func(context.Context, S) (*art.Trajectory, error),
) (map[string]float64, error) {
	g, err := art.Gather(ctx, scenarios, rollout, &art.GatherOptions{Concurrency: 64, Seed: 1 << 40})
	if err != nil {
		return nil, err
	}
	return art.Metrics(g), nil
}

// greedy are the options of a measurement without chance.
func greedy() *art.ChatOptions { return &art.ChatOptions{Temperature: new(0.0)} }
