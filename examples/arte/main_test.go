package main

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/arte/mailbox"
)

// best is the reward of a run that finds, reads and cites in three turns.
const best = 1 + 0.3 + 0.1 + 0.1*(1-3.0/maxTurns)

func openLevel(t *testing.T, n int) (*mailbox.Box, *mailbox.Store) {
	t.Helper()
	usual := *count
	*level, *count = n, 100
	box, store, err := openMail(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		*level, *count = mailbox.Named, usual
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return box, store
}

// The oracle reaches the most that the reward gives, on each question of each level.
func TestAnswer_Oracle(t *testing.T) {
	for n := mailbox.Named; n <= mailbox.Dated; n++ {
		box, store := openLevel(t, n)
		for _, q := range append(box.Train[:100], box.Held...) {
			r := work(t, oracle(q), store, n, q)
			if math.Abs(r.Reward-best) > 1e-12 || r.Metrics["right"] != 1 || r.Metrics["cited"] != 1 || r.Metrics["read"] != 1 {
				t.Fatalf("level %d: %q: reward %v, %v", n, q.Text, r.Reward, r.Metrics)
			}
		}
	}
}

// The agent of valid random calls is right about never.
func TestAnswer_Chance(t *testing.T) {
	box, store := openLevel(t, mailbox.Named)
	g, err := art.Gather(t.Context(), box.Train[:300], func(ctx context.Context, q mailbox.Question) (*art.Trajectory, error) {
		return answer(ctx, chance(art.Rand(ctx)), store, mailbox.Named, q)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := art.Metrics(g)
	if m["format"] != 1 || m["right"] > 0.02 || m["cited"] > 0.02 || m["read"] > 0.02 || m["reward"] > 0.1 {
		t.Errorf("metrics %v", m)
	}
}

// script is a policy that writes given messages, and the last of them forever.
func script(messages ...art.Message) policy {
	next := 0
	return func(context.Context, *art.History) (art.Message, error) {
		next++
		return messages[min(next, len(messages))-1], nil
	}
}

// work lets a policy answer a question.
func work(t *testing.T, next policy, store *mailbox.Store, level int, q mailbox.Question) *art.Trajectory {
	t.Helper()
	r, err := answer(t.Context(), next, store, level, q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAnswer_Bands(t *testing.T) {
	box, store := openLevel(t, mailbox.Named)
	q := box.Held[0]
	search, read := called(2, "search", "query", q.Keywords), called(4, "read", "id", q.Source)
	for name, c := range map[string]struct {
		next   policy
		reward float64
	}{
		"no call":              {script(art.Assistant(q.Answer)), -2 + 0.1},
		"no call, read before": {script(search, read, art.Assistant(q.Answer)), -2 + 0.3},
		"unknown tool":         {script(called(2, "find", "query", "x")), -1.9 + 0.1},
		"unknown argument":     {script(called(2, "search", "words", "x")), -1.8 + 0.1},
		"missing argument":     {script(called(2, "answer", "number", "100")), -1.8 + 0.1},
		"number as a number":   {script(art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{Name: "read", Arguments: `{"id": 7}`}}}), -1.8 + 0.1},
		"wrong":                {script(search, read, called(6, "answer", "number", "1", "id", q.Source)), -1 + 0.4},
		"wrong, invalid id":    {script(called(2, "read", "id", "0"), called(4, "answer", "number", "1", "id", "0")), -1},
		"gave up":              {script(search, called(4, "answer", "number", dontKnow, "id", "0")), 0.2},
		"out of turns":         {script(search), 0.2},
		"found nothing":        {script(called(2, "search", "query", "zebra")), 0.1},
		"right, not cited":     {script(called(2, "answer", "number", " "+q.Answer+". ", "id", "0")), 1 + 0.1 + 0.1*(1-1.0/maxTurns)},
		"right, two sources":   {script(called(2, "answer", "number", q.Answer, "id", "0, "+q.Source)), 1 + 0.3 + 0.05 + 0.1*(1-1.0/maxTurns)},
	} {
		if got := work(t, c.next, store, mailbox.Named, q); math.Abs(got.Reward-c.reward) > 1e-12 {
			t.Errorf("%s: reward %v, want %v", name, got.Reward, c.reward)
		}
	}
}

// What the agent reads is short and holds no more than it should.
func TestAnswer_Results(t *testing.T) {
	box, store := openLevel(t, mailbox.Replied)
	q := box.Held[0]
	r := work(t, oracle(q), store, mailbox.Replied, q)
	hits, mail := r.Messages[3].Content, r.Messages[5].Content
	if lines := strings.Split(hits, "\n"); len(lines) != 2 || !strings.Contains(lines[1], q.Source) || strings.Contains(hits, " is ") {
		t.Errorf("the search returns %s", hits)
	}
	if !strings.Contains(mail, " is "+q.Answer+".") {
		t.Errorf("the mail is %s", mail)
	}
}

func TestOpenMail_Level(t *testing.T) {
	*level = 4
	t.Cleanup(func() { *level = mailbox.Named })
	if _, _, err := openMail(t.Context()); err == nil {
		t.Error("level 4 is no error")
	}
}

func TestFlags_NotYet(t *testing.T) {
	if _, err := after("ruler"); err == nil {
		t.Error("-judge ruler is no error")
	}
	if _, err := prompted("http://localhost", "m"); err == nil {
		t.Error("-baseline is no error")
	}
}
