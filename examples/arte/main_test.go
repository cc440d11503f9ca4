package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/arte/mailbox"
)

// best is the reward of a run that finds, reads and cites in three turns.
const best = 1 + 0.3 + 0.1 + 0.1*(1-3.0/maxTurns)

// mailOf returns the mail and the questions of a level, without a model.
func mailOf(t *testing.T, n int) *experiment {
	t.Helper()
	usual := *level
	*level = n
	e := &experiment{box: mailbox.New(*messages, n, *seed)}
	var err error
	if e.store, err = mailbox.Open(t.Context(), e.box.Messages); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		*level = usual
		if err := e.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// The oracle reaches the most that the reward gives, on each question of each level.
func TestAnswer_Oracle(t *testing.T) {
	for n := mailbox.Named; n <= mailbox.Dated; n++ {
		e := mailOf(t, n)
		for _, q := range append(e.box.Train[:100:100], e.held()...) {
			r := work(t, e, oracle(q), q)
			m := r.Metrics
			if math.Abs(r.Reward-best) > 1e-12 || m["right"] != 1 || m["cited"] != 1 || m["read"] != 1 || m["format"] != 1 {
				t.Fatalf("level %d: %q: reward %v, %v", n, q.Text, r.Reward, r.Metrics)
			}
		}
	}
}

// The careless agent makes no mistake but its choice: it is right as often as the source is the message it reads, and
// otherwise says that it does not know.
func TestAnswer_Careless(t *testing.T) {
	e := mailOf(t, mailbox.Discussed)
	g, err := art.Gather(t.Context(), e.box.Train[:300],
		func(ctx context.Context, q mailbox.Question) (*art.Trajectory, error) {
			return e.answer(careless(q, art.Rand(ctx)))(ctx, q)
		}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := art.Metrics(g)
	if m["format"] != 1 || m["turns"] != 3 || m["right"] != m["read"] || m["right"] < 0.3 || m["right"] > 0.6 {
		t.Errorf("metrics %v", m)
	}
	for _, r := range g.Trajectories {
		if r.Reward < 0 {
			t.Fatalf("reward %v of %v", r.Reward, r.Messages)
		}
	}
}

// A chat that no longer fits the context ends the run like running out of turns, and fails nothing.
func TestAnswer_Context(t *testing.T) {
	e := mailOf(t, mailbox.Named)
	full := func(context.Context, *art.History) (art.Message, error) {
		return art.Message{}, fmt.Errorf("complete: %w", art.ErrContextLength)
	}
	if r := work(t, e, full, e.box.Held[0]); r.Reward != bands[working]+0.1 || r.Metrics["format"] != 1 {
		t.Errorf("reward %v, %v", r.Reward, r.Metrics)
	}
}

// The agent of valid random calls is right about never.
func TestAnswer_Chance(t *testing.T) {
	e := mailOf(t, mailbox.Named)
	g, err := art.Gather(t.Context(), e.box.Train[:300],
		func(ctx context.Context, q mailbox.Question) (*art.Trajectory, error) {
			return e.answer(chance(art.Rand(ctx)))(ctx, q)
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
func work(t *testing.T, e *experiment, next policy, q mailbox.Question) *art.Trajectory {
	t.Helper()
	r, err := e.answer(next)(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAnswer_Bands(t *testing.T) {
	e := mailOf(t, mailbox.Named)
	q := e.box.Held[0]
	search, read := called(2, "search", "query", q.Keywords), called(4, "read", "id", q.Source)
	number := called(2, "read", "id", "7")
	number.ToolCalls[0].Arguments = `{"id": 7}`
	for name, c := range map[string]struct {
		next   policy
		reward float64
	}{
		"no call":              {script(art.Assistant(q.Answer)), -2 + 0.1},
		"no call, read before": {script(search, read, art.Assistant(q.Answer)), -2 + 0.3},
		"unknown tool":         {script(called(2, "find", "query", "x")), -1.9 + 0.1},
		"unknown argument":     {script(called(2, "search", "words", "x")), -1.8 + 0.1},
		"missing argument":     {script(called(2, "answer", "number", "100")), -1.8 + 0.1},
		"id as a number":       {script(number), -1.8 + 0.1},
		"wrong":                {script(search, read, called(6, "answer", "number", "1", "id", q.Source)), -1 + 0.4},
		"wrong, invalid id":    {script(called(2, "read", "id", "0"), called(4, "answer", "number", "1", "id", "0")), -1},
		"gave up":              {script(search, called(4, "answer", "number", dontKnow, "id", "0")), 0.2},
		"out of turns":         {script(search), 0.2},
		"found nothing":        {script(called(2, "search", "query", "zebra")), 0.1},
		"right, not cited": {script(called(2, "answer", "number", " "+q.Answer+". ", "id", "0")), 1 + 0.1 +
			0.1*(1-1.0/maxTurns)},
		"right, two sources": {script(called(2, "answer", "number", q.Answer, "id", "0, "+q.Source)), 1 + 0.3 + 0.05 +
			0.1*(1-1.0/maxTurns)},
	} {
		if got := work(t, e, c.next, q); math.Abs(got.Reward-c.reward) > 1e-12 {
			t.Errorf("%s: reward %v, want %v", name, got.Reward, c.reward)
		}
	}
}

// What the agent reads is short and holds no more than it should.
func TestAnswer_Results(t *testing.T) {
	e := mailOf(t, mailbox.Discussed)
	q := e.box.Held[0]
	r := work(t, e, oracle(q), q)
	hits, mail := r.Messages[3].Content, r.Messages[5].Content
	lines := strings.Split(hits, "\n")
	if len(lines) < 2 || !strings.Contains(hits, q.Source) || strings.Contains(hits, " is ") {
		t.Errorf("the search returns %s", hits)
	}
	if !strings.Contains(mail, " is "+q.Answer+".") {
		t.Errorf("the mail is %s", mail)
	}
}

func TestOpen_Level(t *testing.T) {
	usual := *level
	*level = 4
	t.Cleanup(func() { *level = usual })
	if _, err := open(t.Context()); err == nil {
		t.Error("level 4 is no error")
	}
}

// A hosted model runs the same rollouts.
func TestPrompted(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id": "1", "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
			"message": {"role": "assistant", "content": "no idea"}}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}`)
	}))
	defer server.Close()
	usual := *dir
	*dir = t.TempDir()
	t.Cleanup(func() { *dir = usual })
	m, err := prompted(t.Context(), server.URL+"/v1", "qwen3:8b")
	if err != nil {
		t.Fatal(err)
	}
	reply, err := m.Chat(t.Context(), art.NewTrajectory(art.User("Who?")), nil)
	if err != nil || reply.Content != "no idea" || reply.Sample != nil {
		t.Errorf("%+v, %v", reply, err)
	}
}

// The judge prefers what is right, then what came closer.
func TestAfter(t *testing.T) {
	hook, err := after(t.Context(), "ruler")
	if err != nil {
		t.Fatal(err)
	}
	g := &art.TrajectoryGroup{}
	for i, o := range []outcome{
		{end: right, cited: true, turns: 3}, {end: right, cited: true, turns: 4}, {end: right, turns: 3},
		{end: wrong, found: true, opened: true, cited: true}, {end: wrong, found: true}, {end: gaveUp}, {end: noCall},
	} {
		// Equal trajectories are judged once: these differ in what they say.
		g.Trajectories = append(g.Trajectories, &art.Trajectory{
			History: art.History{Messages: []art.Message{art.Assistant(fmt.Sprint(i))}}, Metrics: o.metrics(),
		})
	}
	judged, err := hook(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	for i, trajectory := range judged[0].Trajectories[1:] {
		if before := judged[0].Trajectories[i].Reward; trajectory.Reward >= before {
			t.Errorf("the %d. gets %v, and the one before %v", i+1, trajectory.Reward, before)
		}
	}
	if _, err := after(t.Context(), "nobody"); err == nil {
		t.Error("judge nobody is no error")
	}
}

// A run of two steps on a few questions: supervised, then reinforced. It is resumed without measuring a step twice.
func TestTrain(t *testing.T) {
	if testing.Short() {
		t.Skip("trains")
	}
	*dir, *steps, *demos, *batch, *group, *count = t.TempDir(), 2, 16, 1, 2, 4
	e, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.measured(t.Context())
	if err := e.demonstrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.train(t.Context(), nil, e.evaluate(t.Context()))
	e.draw(t.Context())
	rows, err := e.backend.History(t.Context(), e.model)
	if err != nil {
		t.Fatal(err)
	}
	for step := range 3 {
		if _, ok := art.Logged(rows, "val/right", step); !ok || e.model.Step() != 2 {
			t.Errorf("step %d is not measured; the run is at %d", step, e.model.Step())
		}
	}
	e.close()
}
