package agents_test

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/grpo/credit"
)

// badRollouts returns rollouts of which the first have a reward of NaN, one of infinity, a tool whose result is no
// UTF-8, and an error.
func badRollouts(m *art.Model, opts *art.ChatOptions) func(context.Context, string) (*art.Trajectory, error) {
	var n atomic.Int64
	return func(ctx context.Context, s string) (*art.Trajectory, error) {
		i := n.Add(1)
		call := art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{ID: "c", Name: "look", Arguments: "{}"}}}
		x := art.NewTrajectory(art.User(s), call, art.ToolResult("c", "a\xff\xfewall"))
		x.Metadata[agents.ScenarioKey] = s
		if _, err := m.Chat(ctx, x, opts); err != nil {
			return nil, err
		}
		x.Reward = float64(i % 5)
		switch i {
		case 1:
			x.Reward = math.NaN()
		case 2:
			x.Reward = math.Inf(1)
		case 3:
			return nil, errors.New("the tool broke")
		}
		return x, nil
	}
}

// Rewards that are no numbers and results that are no UTF-8 do not end a run: it makes its steps, and tells what it
// left out.
func TestTraining_BadRollouts(t *testing.T) {
	if testing.Short() {
		t.Skip("trains")
	}
	b, err := local.Open(t.Context(), &local.Options{Dir: t.TempDir(), Slots: 8, Context: 128, Progress: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	m := art.NewModel("m", nil)
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	var failures []string
	outcome, err := (&agents.Training[string]{
		Model: m, Rollout: badRollouts, Checked: true, Train: []string{"What is there?"}, Val: []string{"Look."},
		Steps: 2, Batch: 1, Group: 8, Every: 2, Chat: art.ChatOptions{MaxTokens: new(4)}, Concurrency: 1,
		Events: &art.Events{RolloutEnd: func(r art.RolloutEnd) {
			if r.Failure != nil {
				failures = append(failures, r.Failure.Message)
			}
		}},
	}).Run(t.Context())
	if err != nil || m.Step() != 2 {
		t.Fatalf("step %d, %v", m.Step(), err)
	}
	if len(failures) != 2 || !strings.Contains(failures[0], "the tool broke") { // one in each step
		t.Errorf("failures %q", failures)
	}
	rows, err := b.History(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	skipped, _ := art.Logged(rows, "data/skipped_"+string(credit.ReasonBadReward), 0)
	if len(outcome.Validations) != 2 || skipped != 2 {
		t.Errorf("%d validations, %v rewards were left out", len(outcome.Validations), skipped)
	}
}
