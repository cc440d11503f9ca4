// Package auto trains a model for a task from a description of it alone: it is ART's AutoRL.
//
//	p := &auto.Project{Dir: "tickets", Task: "Turn a complaint into a ticket with the fields product and urgency.",
//		Model: model, Base: base, Writer: writer, Judge: judge}
//	estimate, err := p.Estimate()
//	result, err := p.Run(ctx)
//
// A writer, which may be the base model, writes inputs, a system prompt and a rubric. Inputs that are like others are
// left out, and the rest must differ enough. Rollouts are one reply each; a judge compares those of an input. The
// result is the comparison with the base model on inputs that were held out, in both orders, with a confidence
// interval, and a page that shows replies of both side by side.
//
// All that was written is kept in the project's folder, and the run in that of its backend: a project that was stopped
// goes on where it was.
package auto

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/ruler"
)

// Project is a task and who works on it. Zero values are the defaults.
type Project struct {
	// Dir is where the plan and the result are stored.
	Dir string
	// Task describes what the model is to do with an input.
	Task string

	// Model is registered and trainable; Base is the same model untrained, whom the result compares with.
	Model, Base *art.Model
	// Writer writes inputs, the system prompt and the rubric. It may be Base.
	Writer *art.Model
	// Judge compares replies. It may be Base, and the page says so then.
	Judge *art.Model
	// JudgeOptions are how to judge. Their rubric is replaced by that of the plan.
	JudgeOptions ruler.Options
	// FreeText asks the writer for JSON in the text of its replies only.
	FreeText bool

	// Inputs is how many to train on, Held how many to compare with the base model. Default 25 and 30.
	Inputs, Held int
	// MinSpread is the least spread of the inputs: see [agents.Spread]. Default 0.2; negative is none.
	MinSpread float64
	// System and Rubric replace those of the writer.
	System, Rubric string
	// Examples are shown before each input, to the model and to the base model alike: for small models, which follow no
	// instruction without. None by default.
	Examples []Example

	// Steps, Batch and Group are of the training. Default 40 steps of 2 inputs, each answered 4 times.
	Steps, Batch, Group int
	// Every is how many steps lie between comparisons. Default 10.
	Every int
	// Goal ends the training early, by the win rate against the base model.
	Goal agents.Goal
	// ConfigOf returns how to train a step. Default: art's defaults.
	ConfigOf func(step int) *art.TrainConfig
	// MaxTokens bounds replies. Default 256.
	MaxTokens int
	// Prices are for the estimate.
	Prices Prices
	// Seed of the order of inputs. Default 0.
	Seed uint64
	// Events are called for rollouts. May be nil.
	Events *art.Events
	// Logger receives what is going on. nil discards.
	Logger *slog.Logger
}

// Input is something to do the task with.
type Input struct {
	ID   string `json:"id"`
	Text string `json:"input"`
}

// Example is an input with the reply that is wanted.
type Example struct {
	Input string `json:"input"`
	Reply string `json:"reply"`
}

// Run writes the plan unless there is one, trains, compares, and writes the page. What an earlier process did is not
// done again.
func (p *Project) Run(ctx context.Context) (*Result, error) {
	p.setDefaults()
	if err := p.validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return nil, err
	}
	plan, err := p.plan(ctx)
	if err != nil {
		return nil, err
	}
	o := p.JudgeOptions
	o.Rubric, o.Logger = plan.Rubric, p.Logger
	if o.OnFailure == ruler.Fail {
		o.OnFailure = ruler.Drop
	}
	judge := ruler.New(p.Judge, &o)
	t := &agents.Training[Input]{
		Model: p.Model, Rollout: plan.rollout, Train: plan.Train, Val: plan.Held, After: judge.After,
		Control: p.Base, Referee: judge, Steps: p.Steps, Batch: p.Batch, Group: p.Group, Every: p.Every, Goal: p.Goal,
		ConfigOf: p.ConfigOf, Chat: art.ChatOptions{MaxTokens: &p.MaxTokens}, Seed: p.Seed, Events: p.Events,
		Logger: p.Logger,
	}
	outcome, err := t.Run(ctx)
	if err != nil {
		return nil, err
	}
	last := outcome.Validations[len(outcome.Validations)-1]
	if last.Tally == nil { // of an earlier process
		if last.Tally, err = t.Compare(ctx); err != nil {
			return nil, err
		}
	}
	result := p.result(plan, outcome, last.Tally)
	return result, p.store(result)
}

func (plan *Plan) rollout(m *art.Model, opts *art.ChatOptions) func(context.Context, Input) (*art.Trajectory, error) {
	return func(ctx context.Context, in Input) (*art.Trajectory, error) {
		t := art.NewTrajectory(art.System(plan.System))
		for _, e := range plan.Examples {
			t.Add(art.User(e.Input))
			t.Add(art.Assistant(e.Reply))
		}
		t.Add(art.User(in.Text))
		t.Metadata[agents.ScenarioKey] = in.ID
		_, err := m.Chat(ctx, t, opts)
		return t, err
	}
}

func (p *Project) setDefaults() {
	p.Inputs, p.Held = cmp.Or(p.Inputs, 25), cmp.Or(p.Held, 30)
	p.Steps, p.Batch, p.Group = cmp.Or(p.Steps, 40), cmp.Or(p.Batch, 2), cmp.Or(p.Group, 4)
	p.Every, p.MaxTokens = cmp.Or(p.Every, 10), cmp.Or(p.MaxTokens, 256)
	p.MinSpread = cmp.Or(p.MinSpread, 0.2)
	if p.Logger == nil {
		p.Logger = slog.New(slog.DiscardHandler)
	}
}

// validate lists every problem.
func (p *Project) validate() error {
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	check(p.Dir != "", "Dir is empty")
	check(len(strings.Fields(p.Task)) > 1, "the task is %q: describe it in a sentence", p.Task)
	check(p.Model != nil && p.Base != nil && p.Writer != nil && p.Judge != nil, "Model, Base, Writer or Judge is nil")
	check(p.Inputs > 0 && p.Held > 0, "Inputs %d, Held %d: want > 0", p.Inputs, p.Held)
	check(p.Group > 1 && p.Steps > 0 && p.Batch > 0 && p.Every > 0,
		"Steps %d, Batch %d, Every %d: want > 0; Group %d: want > 1", p.Steps, p.Batch, p.Every, p.Group)
	if len(problems) == 0 {
		return nil
	}
	return &art.Error{Op: "auto", Err: fmt.Errorf("%w: %w", art.ErrInvalid, errors.Join(problems...)),
		Hint: "correct the Project"}
}

// Price is what a million tokens cost in US dollars.
type Price struct{ Prompt, Completion float64 }

// Prices are those of the writer and the judge. Zero is a model that costs nothing, such as a local one.
type Prices struct{ Writer, Judge Price }

// Load is what a part of the project asks of a model, at most.
type Load struct {
	Calls, PromptTokens, CompletionTokens int
	Dollars                               float64
}

// Estimate is what a project takes, before anything is asked for: an upper bound in calls, and in tokens a guess from
// the lengths that inputs and replies have at most.
type Estimate struct {
	Writer Load
	Judge  Load
	// Replies are those that the model and the base model write, which are trained and run locally.
	Replies, ReplyTokens int
}

// Tokens that the estimate counts with.
const (
	inputTokens       = 60  // of an input
	promptTokens      = 300 // of what is asked, beside inputs and replies
	explanationTokens = 60  // of a judge, for a reply
	perCall           = 8   // inputs of a call
)

// Estimate computes what the project takes. What is stored already is not subtracted.
func (p *Project) Estimate() Estimate {
	p.setDefaults()
	inputs := p.Inputs + p.Held
	comparisons := 1 + (p.Steps+p.Every-1)/p.Every
	var e Estimate
	e.Writer.Calls = 3 * ((inputs + perCall - 1) / perCall)
	e.Writer.PromptTokens = e.Writer.Calls*(promptTokens+30*inputTokens) + 2*promptTokens
	e.Writer.CompletionTokens = e.Writer.Calls*perCall*inputTokens + 2*p.MaxTokens
	e.Writer.Calls += 2

	votes := max(1, p.JudgeOptions.Votes)
	groups, pairs := p.Steps*p.Batch, comparisons*p.Held
	e.Judge.Calls = votes * (groups + 2*pairs)
	e.Judge.PromptTokens = votes * (groups*(promptTokens+p.Group*p.MaxTokens) + 2*pairs*(promptTokens+2*p.MaxTokens))
	e.Judge.CompletionTokens = votes * explanationTokens * (groups*p.Group + 4*pairs)

	e.Replies = groups*p.Group + comparisons*p.Held + p.Held
	e.ReplyTokens = e.Replies * p.MaxTokens
	for l, price := range map[*Load]Price{&e.Writer: p.Prices.Writer, &e.Judge: p.Prices.Judge} {
		l.Dollars = (float64(l.PromptTokens)*price.Prompt + float64(l.CompletionTokens)*price.Completion) / 1e6
	}
	return e
}

// Dollars is what all of it costs.
func (e Estimate) Dollars() float64 { return e.Writer.Dollars + e.Judge.Dollars }

// String is the estimate as a table.
func (e Estimate) String() string {
	var b strings.Builder
	for _, row := range []struct {
		name string
		Load
	}{{"writer", e.Writer}, {"judge", e.Judge}} {
		fmt.Fprintf(&b, "%-7s at most %6d calls, %9d prompt and %9d reply tokens, $%.2f\n", row.name, row.Calls,
			row.PromptTokens, row.CompletionTokens, row.Dollars)
	}
	fmt.Fprintf(&b, "%-7s at most %6d replies, %s%9d tokens\n", "model", e.Replies, strings.Repeat(" ", 21), e.ReplyTokens)
	return b.String()
}
