package local

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// tinyBaseline is the built-in model as it is.
func tinyBaseline(t *testing.T) *art.Model {
	b, err := Open(t.Context(), &Options{Dir: t.TempDir(), Slots: 64})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	m := art.NewModel("tiny", &art.ModelOptions{Frozen: true})
	require.NoError(t, m.Register(t.Context(), b))
	return m
}

// answers asks every question once at the given temperature.
func answers(t *testing.T, m *art.Model, temperature float64, questions []*art.History) []art.Message {
	out := make([]art.Message, len(questions))
	index := make([]int, len(questions))
	for i := range index {
		index[i] = i
	}
	_, err := art.Gather(t.Context(), index, func(ctx context.Context, i int) (*art.Trajectory, error) {
		reply, err := m.Complete(ctx, questions[i], &art.ChatOptions{Temperature: &temperature, MaxTokens: new(60)})
		if err == nil {
			out[i] = reply.Message
		}
		return art.NewTrajectory(), err
	}, &art.GatherOptions{Concurrency: 64})
	require.NoError(t, err)
	return out
}

func ask(text string, tools ...art.Tool) *art.History {
	return &art.History{Messages: []art.Message{art.User(text)}, Tools: tools}
}

// share returns the share of messages that pass.
func share(messages []art.Message, pass func(i int, m art.Message) bool) float64 {
	n := 0
	for i, m := range messages {
		if pass(i, m) {
			n++
		}
	}
	return float64(n) / float64(len(messages))
}

// TestTiny_Formats: the built-in model answers in the requested form.
func TestTiny_Formats(t *testing.T) {
	m := tinyBaseline(t)
	var sums, votes, calls []*art.History
	add := art.Tool{Name: "add", Description: "Add two numbers.", Parameters: json.RawMessage(
		`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}`)}
	for i := range 100 {
		a, b := 1+i%10, 1+i/10
		sums = append(sums, ask(fmt.Sprintf("%d+%d=", a, b)))
		votes = append(votes, ask([]string{"yes or no", "Answer with yes, no or maybe."}[i%2]))
		calls = append(calls, ask(fmt.Sprintf("Add %d and %d.", a, b), add))
	}
	number := share(answers(t, m, 1, sums),
		func(_ int, m art.Message) bool { _, err := strconv.Atoi(m.Content); return err == nil })
	vote := share(answers(t, m, 1, votes),
		func(_ int, m art.Message) bool { return slices.Contains([]string{"yes", "no", "maybe"}, m.Content) })
	call := share(answers(t, m, 0, calls), func(_ int, m art.Message) bool {
		return len(m.ToolCalls) == 1 && m.ToolCalls[0].Name == "add" && json.Valid([]byte(m.ToolCalls[0].Arguments))
	})
	t.Logf("numbers %.2f, votes %.2f, tool calls %.2f", number, vote, call)
	require.GreaterOrEqual(t, number, .9)
	require.GreaterOrEqual(t, vote, .9)
	require.GreaterOrEqual(t, call, .9)
}
