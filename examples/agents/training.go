// Package agents has what MCP-RL and AutoRL share: tasks that a model writes, without duplicates; comparisons with a
// control model, in both orders; and a training with validations that decide when to stop.
package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/ruler"
)

// Training trains a model on scenarios of type S. Zero values are the defaults.
type Training[S any] struct {
	// Model is registered and trainable. It resumes at its step.
	Model *art.Model
	// Rollout returns the rollout of a model. Its trajectories name their scenario: see [ScenarioKey].
	Rollout func(m *art.Model, opts *art.ChatOptions) func(context.Context, S) (*art.Trajectory, error)
	// Checked tells that the rollout gives rewards, and sets the metric "solved" of each trajectory to 1 or 0.
	Checked bool
	// Train and Val are scenarios to train on and to validate with.
	Train, Val []S

	// After judges groups, such as the After of a [ruler.Ruler]. nil leaves the rewards of the rollout, which must be
	// Checked then.
	After func(context.Context, *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error)
	// Control is what validations compare with, pair by pair, such as the untrained base model or a hosted one; Referee
	// judges the pairs. Both may be nil when the rollout is Checked.
	Control *art.Model
	Referee *ruler.Ruler

	// Steps is how many there are in all. Default 40.
	Steps int
	// Batch is the scenarios of a step, Group the rollouts of each. Default 4 and 8.
	Batch, Group int
	// Concurrency bounds rollouts, and so sessions. Default 16.
	Concurrency int
	// MaxFailureFraction is the share of rollouts that may fail. Default 0.5; more of them end the training.
	MaxFailureFraction float64
	// ConfigOf returns how to train a step. Default: art's defaults.
	ConfigOf func(step int) *art.TrainConfig
	// Every is how many steps lie between validations. Default 10. There is one before the first step and after the last.
	Every int
	// Goal ends the training early.
	Goal Goal
	// Chat are the settings of rollouts; validations are greedy.
	Chat art.ChatOptions
	// Seed of the order of scenarios. Default 0.
	Seed uint64
	// Events are called for rollouts. May be nil.
	Events *art.Events
	// Logger receives a line a step and a line a validation. nil discards.
	Logger *slog.Logger
}

// Validation is the result of one validation.
type Validation struct {
	Step int
	// Score is the share of scenarios that were solved, with a checker; else the share of pairs won against the control.
	// A scenario whose rollout failed is not solved.
	Score float64
	// Scenarios is how many there were, and Failures how many rollouts failed.
	Scenarios, Failures int
	// Tally is the comparison with the control; nil without one, and for a validation of an earlier process.
	Tally *Tally
}

// Outcome is the result of a training.
type Outcome struct {
	Validations []Validation
	// Why says what ended it.
	Why string
}

// Run trains until the steps are made, the goal is reached or nothing is learned any more. Validations are logged as
// split "val": "val/score", and with a control "val/win_rate" and its confidence interval. Those that an earlier
// process logged count, so that a run which was stopped goes on where it was.
func (t *Training[S]) Run(ctx context.Context) (*Outcome, error) {
	if err := t.prepare(); err != nil {
		return nil, err
	}
	r := &trainingRun[S]{Training: t, outcome: &Outcome{}}
	if err := r.resume(ctx); err != nil {
		return nil, err
	}
	opts := &art.BatchOptions{Size: t.Batch, Epochs: -1, Seed: t.Seed, Start: t.Model.Step()}
	for b := range art.Batches(t.Train, opts) {
		if stop, err := r.decide(ctx, b.Step); stop || err != nil {
			return r.outcome, err
		}
		if err := r.step(ctx, b); err != nil {
			return r.outcome, err
		}
	}
	return r.outcome, nil // not reached: batches do not end
}

// ConfigOf returns how the examples train a step: PPO, two passes over each step's groups in two updates each, at a
// learning rate that falls as 1/step from step 50 on.
func ConfigOf(rate float64) func(step int) *art.TrainConfig {
	return func(step int) *art.TrainConfig {
		return &art.TrainConfig{
			Loss: credit.PPO, LearningRate: rate * min(1, 50/float64(step+1)),
			Epochs: 2, MiniBatches: 2, MaxGradNorm: 1, WeightDecay: new(0.0),
		}
	}
}

// Compare runs the validation scenarios with the model as it is and with the control, and compares them. Nothing is
// logged.
func (t *Training[S]) Compare(ctx context.Context) (*Tally, error) {
	if err := t.prepare(); err != nil {
		return nil, err
	}
	if t.Control == nil {
		return nil, &art.Error{Op: "compare", Err: fmt.Errorf("%w: there is no Control", art.ErrInvalid), Hint: "set it"}
	}
	r := &trainingRun[S]{Training: t}
	g, err := r.greedy(ctx, t.Model, t.Val)
	if err != nil {
		return nil, err
	}
	return r.compare(ctx, g.Trajectories)
}

// prepare sets the defaults, and lists every problem.
func (t *Training[S]) prepare() error {
	t.Steps, t.Batch, t.Group = cmp.Or(t.Steps, 40), cmp.Or(t.Batch, 4), cmp.Or(t.Group, 8)
	t.Concurrency, t.Every = cmp.Or(t.Concurrency, 16), cmp.Or(t.Every, 10)
	t.MaxFailureFraction = cmp.Or(t.MaxFailureFraction, 0.5)
	if t.ConfigOf == nil {
		t.ConfigOf = func(int) *art.TrainConfig { return nil }
	}
	if t.Logger == nil {
		t.Logger = slog.New(slog.DiscardHandler)
	}
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	check(t.Model != nil && t.Model.Backend() != nil, "Model is nil or not registered")
	check(t.Rollout != nil, "Rollout is nil")
	check(len(t.Train) > 0 && len(t.Val) > 0, "%d scenarios to train on, %d to validate with: want both", len(t.Train),
		len(t.Val))
	check(t.Checked || t.After != nil, "there is neither a checker nor a judge to give rewards")
	check((t.Control == nil) == (t.Referee == nil), "Control and Referee belong together")
	check(t.Checked || t.Control != nil, "without a checker, validation needs a Control and a Referee")
	check(t.Steps > 0 && t.Batch > 0 && t.Every > 0, "Steps %d, Batch %d, Every %d: want > 0", t.Steps, t.Batch, t.Every)
	check(t.Group > 1, "Group is %d, want at least 2", t.Group)
	if len(problems) == 0 {
		return nil
	}
	return &art.Error{Op: "train", Err: fmt.Errorf("%w: %w", art.ErrInvalid, errors.Join(problems...)),
		Hint: "correct the Training"}
}

type trainingRun[S any] struct {
	*Training[S]
	outcome *Outcome
	control []*art.Trajectory // of validation, made once
}

// resume reads the validations of earlier processes.
func (r *trainingRun[S]) resume(ctx context.Context) error {
	keeper, ok := r.Model.Backend().(driver.CheckpointKeeper)
	if !ok {
		return nil
	}
	rows, err := keeper.History(ctx, r.Model)
	if err != nil {
		return err
	}
	for step := range r.Model.Step() + 1 {
		if score, ok := art.Logged(rows, "val/score", step); ok {
			n, _ := art.Logged(rows, "val/scenarios", step)
			failed, _ := art.Logged(rows, "val/failed", step)
			r.outcome.Validations = append(r.outcome.Validations,
				Validation{Step: step, Score: score, Scenarios: int(n), Failures: int(failed)})
		}
	}
	return nil
}

// decide validates when it is time, and tells whether the training ends.
func (r *trainingRun[S]) decide(ctx context.Context, step int) (stop bool, err error) {
	last := step >= r.Steps
	done := r.outcome.Validations
	validated := len(done) > 0 && done[len(done)-1].Step == step
	if (last || step%r.Every == 0) && !validated {
		v, err := r.validation(ctx, step)
		if err != nil {
			return false, err
		}
		r.outcome.Validations = append(r.outcome.Validations, *v)
	}
	scores := make([]float64, len(r.outcome.Validations))
	for i, v := range r.outcome.Validations {
		scores[i] = v.Score
	}
	why, stop := r.Goal.Reached(scores)
	if last && !stop {
		why, stop = fmt.Sprintf("all %d steps are made", r.Steps), true
	}
	r.outcome.Why = why
	return stop, nil
}

func (r *trainingRun[S]) step(ctx context.Context, b art.Batch[S]) error {
	groups, err := art.GatherGroups(ctx, b.Items, r.Rollout(r.Model, &r.Chat), &art.GatherOptions{
		GroupSize: r.Group, Concurrency: r.Concurrency, Seed: uint64(b.Step), After: r.After, Events: r.Events,
		MaxFailureFraction: r.MaxFailureFraction,
	})
	if err != nil {
		return err
	}
	for _, g := range groups {
		for _, f := range g.Failures {
			r.Logger.Warn("a rollout failed", "step", b.Step, "scenario", fmt.Sprint(b.Items[f.Scenario]), "reason", f.Message)
		}
	}
	if len(groups) == 0 {
		return &art.Error{Op: "train", Err: fmt.Errorf("%w: the judge left out all %d of step %d", art.ErrNoGroups,
			len(b.Items), b.Step), Hint: "look at the judge's log"}
	}
	result, err := r.Model.Train(ctx, groups, r.ConfigOf(b.Step))
	if err != nil {
		return err
	}
	if err := r.Model.Log(ctx, "train", groups, result.Metrics); err != nil {
		return err
	}
	m := art.Metrics(groups...)
	r.Logger.Info("step", "step", b.Step, "reward", m["reward"], "solved", m["solved"], "completed", m["completed"],
		"turns", m["turns"], "tool_errors", m["tool_errors"], "skipped", len(result.Skipped))
	return nil
}

// validation runs the validation scenarios greedily and logs how well they went.
func (r *trainingRun[S]) validation(ctx context.Context, step int) (*Validation, error) {
	g, err := r.greedy(ctx, r.Model, r.Val)
	if err != nil {
		return nil, err
	}
	v := &Validation{Step: step, Scenarios: len(r.Val), Failures: len(g.Failures)}
	metrics := map[string]float64{"scenarios": float64(v.Scenarios), "failed": float64(v.Failures)}
	if r.Control != nil {
		if v.Tally, err = r.compare(ctx, g.Trajectories); err != nil {
			return nil, err
		}
		maps.Copy(metrics, v.Tally.metrics())
		v.Score = metrics["win_rate"]
	}
	if r.Checked {
		solved := 0.0
		for _, t := range g.Trajectories {
			solved += t.Metrics["solved"]
		}
		v.Score = solved / float64(v.Scenarios)
	}
	metrics["score"] = v.Score
	r.Logger.Info("validation", "step", step, "score", v.Score, "failed", v.Failures)
	return v, r.Model.Log(ctx, "val", []*art.TrajectoryGroup{g}, metrics)
}

// compare judges the model's trajectories against the control's, which are made at the first comparison.
func (r *trainingRun[S]) compare(ctx context.Context, ours []*art.Trajectory) (*Tally, error) {
	if r.control == nil {
		g, err := r.greedy(ctx, r.Control, r.Val)
		if err != nil {
			return nil, fmt.Errorf("control: %w", err)
		}
		r.control = g.Trajectories
	}
	tally, err := Versus(ctx, r.Referee, ours, r.control)
	if err != nil {
		return tally, err
	}
	if rate, _, _ := tally.WinRate(); math.IsNaN(rate) {
		err = fmt.Errorf("no scenario has a trajectory of both the model and the control")
	}
	return tally, err
}

// greedy runs scenarios with a model that takes the likeliest token.
func (r *trainingRun[S]) greedy(ctx context.Context, m *art.Model, scenarios []S) (*art.TrajectoryGroup, error) {
	opts := r.Chat
	opts.Temperature = new(0.0)
	return art.Gather(ctx, scenarios, r.Rollout(m, &opts), &art.GatherOptions{
		Concurrency: r.Concurrency, Seed: 1 << 32, Events: r.Events, MaxFailureFraction: r.MaxFailureFraction,
	})
}

// Goal says when a training has learned enough, or learns no more, by its validation.
type Goal struct {
	// Value is the validation score to reach. 0 is none.
	Value float64
	// Patience is how many validations in a row may stay below the best so far plus MinGain. 0 is without end.
	Patience int
	// MinGain is how much better than the best a validation must be to count as an improvement. Default 0: any gain.
	MinGain float64
}

// Reached decides after the validations so far, oldest first; the first is that of the untrained model, which does not
// end the training. why says what decided. NaN is no improvement.
func (g Goal) Reached(scores []float64) (why string, stop bool) {
	if len(scores) < 2 {
		return "", false
	}
	best, at := math.Inf(-1), 0
	for i, score := range scores {
		if score > best+g.MinGain || math.IsInf(best, -1) && !math.IsNaN(score) {
			best, at = score, i
		}
	}
	last, waited := scores[len(scores)-1], len(scores)-1-at
	switch {
	case g.Value > 0 && last >= g.Value:
		return fmt.Sprintf("validation reached %.3f, the goal is %.3f", last, g.Value), true
	case g.Patience > 0 && waited >= g.Patience:
		return fmt.Sprintf("no validation of the last %d was better than %.3f", waited, best), true
	}
	return "", false
}

// Logger writes lines without their time, for a person who watches.
func Logger(out io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// Distillation is what a teacher's rollouts came to.
type Distillation struct {
	Rollouts, Failures int
	Kept               int // those that were trained on
	Skipped            []art.Skip
}

// Distill has a teacher, which may be a prompted model behind an API, work on the first n training scenarios with the
// same agent, and trains the model on its rollouts that are good enough: one supervised step, before reinforcement
// learning goes on from there. keep says which are; nil keeps those that a checker says are solved. The model must be
// at step 0.
func (t *Training[S]) Distill(
	ctx context.Context, teacher *art.Model, n int, keep func(*art.Trajectory) bool, cfg *art.SFTConfig,
) (*Distillation, error) {
	if err := t.prepare(); err != nil {
		return nil, err
	}
	if keep == nil && t.Checked {
		keep = func(x *art.Trajectory) bool { return x.Metrics["solved"] == 1 }
	}
	if keep == nil || t.Model.Step() > 0 || n < 1 {
		return nil, &art.Error{
			Op: "distill", Hint: "distill at step 0, with a rule for what to keep",
			Err: fmt.Errorf("%w: n is %d, the model is at step %d, keep or a checker is set: %v", art.ErrInvalid, n,
				t.Model.Step(), keep != nil),
		}
	}
	g, err := art.Gather(ctx, t.Train[:min(n, len(t.Train))], t.Rollout(teacher, &t.Chat), &art.GatherOptions{
		Concurrency: t.Concurrency, Seed: 1 << 33, Events: t.Events, MaxFailureFraction: t.MaxFailureFraction,
	})
	if err != nil {
		return nil, fmt.Errorf("teacher: %w", err)
	}
	d := &Distillation{Rollouts: len(g.Trajectories) + len(g.Failures), Failures: len(g.Failures)}
	var good []*art.Trajectory
	for _, x := range g.Trajectories {
		if keep(x) {
			good = append(good, x)
		}
	}
	if d.Kept = len(good); d.Kept == 0 {
		return d, &art.Error{Op: "distill", Err: fmt.Errorf("%w: no rollout of %s is good enough, of %d",
			art.ErrNoGroups, teacher.Name(), d.Rollouts),
			Hint: "take a stronger teacher, or easier scenarios"}
	}
	result, err := t.Model.TrainSFT(ctx, good, cfg)
	if err != nil {
		return d, err
	}
	d.Skipped = result.Skipped
	return d, nil
}
