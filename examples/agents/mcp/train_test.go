package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/agents/mcp"
	"github.com/goart-dev/art/examples/agents/mcp/synthetic"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/ruler"
)

// learner knows one more tenth of the scenarios at each step, at random in training.
func learner(lists ...[]mcp.Scenario) *arttest.Backend {
	oracle := synthetic.Oracle(lists...)
	return &arttest.Backend{Reply: func(ctx context.Context, m *art.Model, r *art.ChatRequest) (art.Message, error) {
		h := 0
		for _, c := range r.Messages[1].Content {
			h = (h*31 + int(c)) % 10
		}
		knows := h < m.Step()
		if r.Settings.Temperature > 0 {
			knows = art.Rand(ctx).IntN(2) == 0
		}
		if !knows {
			return synthetic.CallMessage("c", call(mcp.CompleteTool, "summary", "no"))
		}
		return oracle(ctx, m, r)
	}}
}

func training(t *testing.T, seed uint64) (*agents.Training[mcp.Scenario], *arttest.Backend) {
	t.Helper()
	train, val := synthetic.Orders.Scenarios(seed, 2)
	val = val[:30]
	b := learner(train, val)
	agent := &mcp.Agent{Server: inProcess(synthetic.Orders, seed), Check: synthetic.Orders.Checker(seed), MaxTurns: 4}
	return &agents.Training[mcp.Scenario]{
		Model: registered(t, b, "learner", false), Rollout: agent.Rollout, Checked: true, Train: train, Val: val,
		Steps: 6, Batch: 2, Group: 4, Every: 2,
	}, b
}

// A training validates before, between and after its steps, stops at its goal, and goes on where it was.
func TestTraining_Goal(t *testing.T) {
	tr, _ := training(t, 1)
	tr.Steps = 2
	first, err := tr.Run(t.Context())
	if err != nil || tr.Model.Step() != 2 || len(first.Validations) != 2 || first.Validations[0].Score != 0 {
		t.Fatalf("%+v at step %d, %v", first, tr.Model.Step(), err)
	}
	tr.Steps, tr.Goal = 20, agents.Goal{Value: 0.35}
	outcome, err := tr.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := outcome.Validations
	last := v[len(v)-1]
	if !reflect.DeepEqual(v[:2], first.Validations) || last.Score < 0.35 || last.Step != tr.Model.Step() ||
		last.Step >= 20 || !strings.Contains(outcome.Why, "the goal is 0.350") {
		t.Errorf("%+v at step %d: %s", v, tr.Model.Step(), outcome.Why)
	}
	for i := range v {
		if v[i].Step != 2*i || i > 0 && v[i].Score < v[i-1].Score {
			t.Errorf("%+v", v)
		}
	}
}

// A training whose validations do not improve ends.
func TestTraining_Patience(t *testing.T) {
	tr, b := training(t, 1)
	b.Reply = calls(call(mcp.CompleteTool, "summary", "no"))
	tr.Goal, tr.Steps, tr.Every = agents.Goal{Patience: 2}, 20, 1
	outcome, err := tr.Run(t.Context())
	if err != nil || tr.Model.Step() != 2 || !strings.Contains(outcome.Why, "of the last 2 was better") {
		t.Errorf("%+v at step %d, %v", outcome, tr.Model.Step(), err)
	}
}

// A judge in place of the checker sees each pair of validation, in both orders, and the win rate follows.
func TestTraining_Judged(t *testing.T) {
	tr, b := training(t, 1)
	check := synthetic.Orders.Checker(1)
	var orders atomic.Int64
	rule := ruler.JudgeFunc(func(ctx context.Context, items []ruler.Item) ([]ruler.Rating, error) {
		var ratings []ruler.Rating
		for _, item := range items {
			id := item.Trajectory.Metadata[agents.ScenarioKey].(string)
			s := mcp.Scenario{}
			for _, list := range [][]mcp.Scenario{tr.Train, tr.Val} {
				for _, one := range list {
					if one.ID == id {
						s = one
					}
				}
			}
			score, err := check(ctx, s, item.Trajectory)
			if err != nil {
				return nil, err
			}
			ratings = append(ratings, ruler.Rating{ID: item.ID, Score: score})
		}
		if len(items) == 2 {
			orders.Add(1)
		}
		return ratings, nil
	})
	judge := ruler.New(nil, &ruler.Options{Judges: []ruler.Judge{rule}})
	agent := &mcp.Agent{Server: inProcess(synthetic.Orders, 1), MaxTurns: 4}
	tr.Rollout, tr.Checked, tr.After, tr.Referee, tr.Steps = agent.Rollout, false, judge.After, judge, 4
	frozen := art.NewModel("control", &art.ModelOptions{Frozen: true})
	if err := frozen.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	tr.Control = frozen
	outcome, err := tr.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, last := outcome.Validations[0], outcome.Validations[len(outcome.Validations)-1]
	if first.Score != 0.5 || first.Tally.Ties != len(tr.Val) || last.Score <= 0.6 || last.Tally.Losses > 0 ||
		last.Tally.Wins+last.Tally.Ties != len(tr.Val) {
		t.Errorf("first %v, last %v", first.Tally, last.Tally)
	}
}

// A teacher's rollouts are shown where they solve their scenario, in one supervised step, from which the training goes
// on.
func TestTraining_Distill(t *testing.T) {
	tr, _ := training(t, 1)
	oracle := synthetic.Oracle(tr.Train)
	teacher := scripted(t, func(ctx context.Context, m *art.Model, r *art.ChatRequest) (art.Message, error) {
		if strings.HasPrefix(r.Messages[1].Content, "Cancel") {
			return synthetic.CallMessage("c", call(mcp.CompleteTool, "summary", "no"))
		}
		return oracle(ctx, m, r)
	}, true)
	wanted := 0
	for _, s := range tr.Train[:50] {
		if !strings.HasPrefix(s.Task, "Cancel") {
			wanted++
		}
	}
	d, err := tr.Distill(t.Context(), teacher, 50, nil, nil)
	if err != nil || d.Rollouts != 50 || d.Kept != wanted || wanted == 50 || tr.Model.Step() != 1 {
		t.Fatalf("%+v, want %d kept; step %d, %v", d, wanted, tr.Model.Step(), err)
	}
	if _, err := tr.Distill(t.Context(), teacher, 50, nil, nil); !errors.Is(err, art.ErrInvalid) {
		t.Errorf("distilled at step 1: %v", err)
	}
	tr.Steps = 2
	if o, err := tr.Run(t.Context()); err != nil || tr.Model.Step() != 2 {
		t.Errorf("%+v, %v", o, err)
	}
	tr, _ = training(t, 1)
	bad := scripted(t, calls(call(mcp.CompleteTool, "summary", "no")), true)
	if _, err := tr.Distill(t.Context(), bad, 5, nil, nil); !errors.Is(err, art.ErrNoGroups) || tr.Model.Step() != 0 {
		t.Errorf("a teacher that solves nothing: %v", err)
	}
}

func TestTraining_Invalid(t *testing.T) {
	_, err := (&agents.Training[mcp.Scenario]{Group: 1}).Run(t.Context())
	for _, want := range []string{"Model is nil", "Rollout is nil", "0 scenarios", "neither a checker", "Group is 1",
		"needs a Control"} {
		if !errors.Is(err, art.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to have %q", err, want)
		}
	}
}

// Scenarios are kept as they were, for the tools that they were made for.
func TestStore(t *testing.T) {
	about, err := inProcess(synthetic.Orders, 1).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "scenarios")
	if _, _, err := mcp.Load(dir, about); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	train, val := synthetic.Orders.Scenarios(1, 2)
	if err := mcp.Store(dir, about, train, val); err != nil {
		t.Fatal(err)
	}
	if err := mcp.Store(dir, about, val, train); err == nil {
		t.Error("stored scenarios are overwritten")
	}
	gotTrain, gotVal, err := mcp.Load(dir, about)
	if err != nil || !reflect.DeepEqual(gotTrain, train) || !reflect.DeepEqual(gotVal, val) {
		t.Errorf("loaded scenarios differ: %v", err)
	}
	other := &mcp.Description{Tools: append(about.Tools[1:3:3], art.Tool{Name: "new"})}
	_, _, err = mcp.Load(dir, other)
	if err == nil || !strings.Contains(err.Error(), "cancel_order is gone, order_status is gone, new is new") {
		t.Errorf("other tools: %v", err)
	}
	for _, line := range []string{
		"prose", `{"id":"1","task":""}`, `{"task":"x"}`, `{"id":"1","task":"x","difficulty":9}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, "val.jsonl"), []byte(line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := mcp.Load(dir, about); err == nil {
			t.Errorf("%s is a scenario", line)
		}
	}
}

func TestSplit(t *testing.T) {
	var list []mcp.Scenario
	for n := range 30 {
		train, val := mcp.Split(list, 7)
		seen := map[string]bool{}
		for _, s := range append(train, val...) {
			seen[s.ID] = true
		}
		if len(seen) != n || n > 1 && (len(val) == 0 || len(val) > (n+1)/3 || len(train) == 0) {
			t.Errorf("%d scenarios: %d and %d", n, len(train), len(val))
		}
		list = append(list, mcp.Scenario{ID: strings.Repeat("x", n+1)})
	}
}

// A generator may write prose, repeat itself, and leave out fields; what is of use is kept and the rest reported.
func TestGenerate(t *testing.T) {
	about, err := inProcess(synthetic.Orders, 1).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answers := []string{
		"Sure! Here are some tasks you could try.",
		`Of course: {"scenarios": [{"task": "Find the order of Ann Bell and cancel it.", "difficulty": 2},
			{"task": "find the order of ann bell, and cancel it", "difficulty": 2}, {"task": " ", "difficulty": 1}]}`,
		`{"tasks": []}`, `{"scenarios": "none"}`, `{"scenarios": [{"task": "Where is order 1234?"}]}`,
		`{"scenarios": [{"task": "Where is order 1234?", "difficulty": 1}, {"task": "Where is order 1235?", "difficulty": 1},
			{"task": "One too many.", "difficulty": 5}]}`,
	}
	var prompts []string
	n := 0
	model := scripted(t, func(_ context.Context, _ *art.Model, r *art.ChatRequest) (art.Message, error) {
		prompts = append(prompts, r.Messages[0].Content)
		if f := r.Settings.ResponseFormat; f == nil || !json.Valid(f.Schema) {
			t.Errorf("the reply is not restricted: %+v", f)
		}
		n++
		return art.Assistant(answers[n-1]), nil
	}, true)
	o := &mcp.GenerateOptions{Model: model, Want: 3, MaxCalls: 6, Instructions: "About lamps."}
	list, calls, err := mcp.Generate(t.Context(), about, o)
	if err != nil || len(list) != 3 || len(calls) != 6 || list[2].Task != "Where is order 1235?" ||
		list[0].ID == list[1].ID {
		t.Fatalf("%+v, %v", list, err)
	}
	for i, want := range []string{
		"has no JSON", "is like", "no field", "scenarios", "no difficulty", "more than was asked",
	} {
		if !strings.Contains(strings.Join(calls[i].Dropped, "; "), want) {
			t.Errorf("call %d: %q, want %q", i, calls[i].Dropped, want)
		}
	}
	if p := prompts[5]; !strings.Contains(p, "cancel_order") || !strings.Contains(p, "orders://about") ||
		!strings.Contains(p, "About lamps.") || !strings.Contains(p, "- Find the order of Ann Bell") {
		t.Errorf("the prompt is %s", p)
	}
	n = 0
	o.MaxCalls = 2
	list, _, err = mcp.Generate(t.Context(), about, o)
	if !errors.Is(err, agents.ErrTooFew) || len(list) != 1 || !strings.Contains(err.Error(), "1 of 3 in 2 calls") {
		t.Errorf("%v, %v", list, err)
	}
}
