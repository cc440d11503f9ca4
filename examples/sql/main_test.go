package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/sql/world"
)

// set changes flags for a test.
func set[T any](t *testing.T, flag *T, value T) {
	t.Helper()
	usual := *flag
	*flag = value
	t.Cleanup(func() { *flag = usual })
}

// questions are some of a level, without a model.
func questions(t *testing.T, level int) []world.Question {
	t.Helper()
	w, err := world.New(t.Context(), level, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w.Held[:min(100, len(w.Held))]
}

// work lets a policy answer a question.
func work(t *testing.T, next policy, q *world.Question) *art.Trajectory {
	t.Helper()
	r, err := answer(t.Context(), next, begin(), q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The oracle reaches the most that the reward gives, on questions of each level.
func TestAnswer_Oracle(t *testing.T) {
	for level := world.Whole; level <= world.Grouped; level++ {
		for _, q := range questions(t, level) {
			r := work(t, oracle(&q), &q)
			if m := r.Metrics; r.Reward != 1 || m["right"] != 1 || m["near"] != 0 || m["ran"] != 1 || m["turns"] != 2 {
				t.Fatalf("level %d: %q: reward %v, %v", level, q.Text, r.Reward, m)
			}
		}
	}
}

// Queries in the text of replies do as well as tool calls, and no tool is offered.
func TestAnswer_InText(t *testing.T) {
	set(t, &inText, true)
	for _, q := range questions(t, world.Grouped)[:20] {
		r := work(t, oracle(&q), &q)
		if r.Reward != 1 || r.Metrics["turns"] != 2 || len(r.Tools) > 0 || r.Messages[3].Role != art.RoleUser {
			t.Fatalf("%q: reward %v, %v", q.Text, r.Reward, r.Messages)
		}
	}
	for i, m := range prompted() {
		if m.Role == art.RoleTool || len(m.ToolCalls) > 0 {
			t.Errorf("message %d of the good prompt is %+v", i, m)
		}
	}
}

// The careless agent's queries all run, and what it misses is conventions alone.
func TestAnswer_Careless(t *testing.T) {
	g, err := art.Gather(t.Context(), questions(t, world.Joined),
		func(ctx context.Context, q world.Question) (*art.Trajectory, error) {
			return answer(ctx, careless(&q, art.Rand(ctx)), plain(), &q)
		}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m := art.Metrics(g); m["ran"] != 1 || m["right"]+m["near"] != 1 || m["right"] < 0.1 || m["right"] > 0.5 {
		t.Errorf("metrics %v", m)
	}
}

// Guessing is right about never.
func TestAnswer_Guesser(t *testing.T) {
	for _, level := range []int{world.Single, world.Grouped} {
		g, err := art.Gather(t.Context(), questions(t, level),
			func(ctx context.Context, q world.Question) (*art.Trajectory, error) {
				return answer(ctx, guesser(&q, art.Rand(ctx)), plain(), &q)
			}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m := art.Metrics(g); m["ran"] != 1 || m["right"] > 0.04 || m["near"] > 0.06 {
			t.Errorf("level %d: metrics %v", level, m)
		}
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

// What an agent does earns what the reward says, and no more than one turn follows the last message.
func TestAnswer_Rewards(t *testing.T) {
	var q world.Question
	for _, q = range questions(t, world.Joined) {
		if len(q.Misses) == 7 {
			break
		}
	}
	query := called(2, q.Query)
	missing := func(n int) art.Message {
		for _, m := range q.Misses {
			if m.Missed.Len() == n {
				return art.Assistant(m.Answer)
			}
		}
		panic("no such answer")
	}
	broken := called(2, "SELECT nothing")
	arguments := called(2, "")
	arguments.ToolCalls[0].Arguments = `{"query": "SELECT 1"}`
	tool := called(2, q.Query)
	tool.ToolCalls[0].Name = "search"
	for name, c := range map[string]struct {
		next   policy
		reward float64
		turns  int
	}{
		"right":                {script(query, art.Assistant(q.Answer)), 1, 2},
		"in a sentence":        {script(query, art.Assistant("It is "+q.Answer+" euros.")), 1, 2},
		"one convention":       {script(query, missing(1)), 0.3, 2},
		"two conventions":      {script(query, missing(2)), 0.2, 2},
		"three conventions":    {script(query, missing(3)), 0.1 + 0.2/3, 2},
		"wrong":                {script(query, art.Assistant("77777.77")), 0.15, 2},
		"no answer":            {script(query), 0.15, 3},
		"other query":          {script(called(2, "SELECT 1"), art.Assistant("77777.77")), 0.1, 2},
		"second query":         {script(broken, query, art.Assistant(q.Answer)), 1, 3},
		"query fails":          {script(broken, art.Assistant("77777.77")), 0, 2},
		"no query":             {script(art.Assistant(q.Answer)), 0, 1},
		"query fails, guessed": {script(broken, art.Assistant(q.Answer)), 0, 2},
		"wrong arguments":      {script(arguments, art.Assistant(q.Answer)), 0, 2},
		"unknown tool":         {script(tool, art.Assistant(q.Answer)), 0, 2},
		"nothing":              {script(art.Assistant("")), 0, 1},
		"code": {script(art.Assistant("I ask:\n```sql\n"+q.Query+"\n```\nand see."), art.Assistant(q.Answer)),
			1, 2},
	} {
		r := work(t, c.next, &q)
		if math.Abs(r.Reward-c.reward) > 1e-12 || r.Metrics["turns"] != float64(c.turns) {
			t.Errorf("%s: reward %v after %v turns, want %v and %d", name, r.Reward, r.Metrics["turns"], c.reward, c.turns)
		}
	}
}

// A chat that no longer fits the context ends the run like running out of turns, and fails nothing.
func TestAnswer_Context(t *testing.T) {
	q := questions(t, world.Whole)[0]
	full := func(context.Context, *art.History) (art.Message, error) {
		return art.Message{}, fmt.Errorf("complete: %w", art.ErrContextLength)
	}
	if r := work(t, full, &q); r.Reward != 0 || r.Metrics["turns"] != 1 {
		t.Errorf("reward %v, %v", r.Reward, r.Metrics)
	}
}

// The prompt of training tells no convention, nor does anything that the agent reads before it asks.
func TestPrompt_TellsNoConvention(t *testing.T) {
	for _, q := range questions(t, world.Grouped) {
		r := work(t, oracle(&q), &q)
		said := strings.ToLower(r.Messages[0].Content + r.Tools[0].Description + q.Text)
		for _, word := range []string{"cent ", "cents", "cancel", "delete", "count:"} {
			if strings.Contains(said, word) {
				t.Errorf("%q tells of %q", said, word)
			}
		}
		if len(said)+len(q.Schema) > 800 {
			t.Errorf("%d bytes of prompt: %s %s", len(said)+len(q.Schema), said, q.Schema)
		}
	}
}

// The good prompt is a chat that continues with a question.
func TestPrompt_Prompted(t *testing.T) {
	set(t, prompt, good)
	q := questions(t, world.Single)[0]
	if r := work(t, oracle(&q), &q); r.Reward != 1 || len(r.Messages) != len(prompted())+4 {
		t.Errorf("reward %v of %d messages", r.Reward, len(r.Messages))
	}
	for i, m := range prompted() {
		for _, c := range m.ToolCalls {
			if after := prompted()[i+1]; after.Role != art.RoleTool || after.ToolCallID != c.ID {
				t.Errorf("%+v is followed by %+v", c, after)
			}
		}
	}
	if last := prompted()[len(prompted())-1]; last.Role != art.RoleAssistant || len(last.ToolCalls) > 0 {
		t.Errorf("the last message is %+v", last)
	}
}

func TestRead_Text(t *testing.T) {
	for text, want := range map[string]string{
		"```sql\nSELECT 1\n```":                                                       "SELECT 1",
		"So:\n```\nSELECT 1;\n```\nor\n```\nSELECT 2```":                              "SELECT 1;",
		"```json\n{\"name\": \"query\", \"arguments\": {\"sql\": \"SELECT 1\"}}\n```": "SELECT 1",
		`{"name": "query", "arguments": {"sql": "SELECT 1"}}`:                         "SELECT 1",
		"SELECT 1":                             "SELECT 1",
		"with t AS (SELECT 1) SELECT * FROM t": "with t AS (SELECT 1) SELECT * FROM t",
		"42":                                   "", "Select one of them.": "Select one of them.", "The answer is `42`.": "", "": "",
		`{"name": "other", "arguments": {"sql": "SELECT 1"}}`: "", `{"name": "query", "arguments": {}}`: "",
		"```sql\nSELECT 1": "SELECT 1", "```\n42\n```": "", "SELECT\n1": "SELECT\n1",
		"<tool_call>\n{{\"name\": \"query\", \"arguments\": {\"sql\": \"SELECT 1\"}}}\n</tool_call>":     "SELECT 1",
		"```json\n{\n  \"name\": \"query\",\n  \"arguments\": {\n    \"sql\": \"SELECT 1\"\n  }\n}\n```": "SELECT 1",
		`{"name": "query", "arguments": {"sql": "SELECT`:                                                 "",
	} {
		reply := art.Assistant(text)
		c, ok := read(&reply)
		if ok != (want != "") || ok && c.query != want || c.result("1").Role != art.RoleUser {
			t.Errorf("%q: %+v, %v, want %q", text, c, ok, want)
		}
	}
}

// The built-in model begins with the lowest level and demonstrations, others with queries of their own. What is given
// stays.
func TestSettle(t *testing.T) {
	for _, c := range []struct {
		base                 string
		level, demos         int
		wantLevel, wantDemos int
	}{
		{builtin, -1, -1, world.Whole, 1200},
		{"FILE.gguf", -1, -1, world.Single, 0},
		{builtin, 2, 0, 2, 0},
		{"FILE.gguf", 0, 50, 0, 50},
	} {
		set(t, &inText, false)
		set(t, base, c.base)
		set(t, level, c.level)
		set(t, demos, c.demos)
		set(t, prompt, "")
		set(t, group, 0)
		if err := settle(); err != nil {
			t.Error(err)
		}
		if *level != c.wantLevel || *demos != c.wantDemos || inText != (c.base != builtin) {
			t.Errorf("%+v: level %d, %d demonstrations", c, *level, *demos)
		}
	}
}

// A prompt is one of two, and a baseline is measured beside another one.
func TestSettle_Prompt(t *testing.T) {
	set(t, &inText, inText)
	set(t, level, *level)
	set(t, demos, *demos)
	set(t, group, *group)
	for _, c := range []struct {
		prompt   string
		baseline bool
	}{{"best", false}, {good, true}} {
		set(t, prompt, c.prompt)
		set(t, baseline, c.baseline)
		if err := settle(); err == nil {
			t.Errorf("%+v is no error", c)
		}
	}
}

func TestOpen_Level(t *testing.T) {
	set(t, level, 4)
	if _, err := open(t.Context()); err == nil {
		t.Error("level 4 is no error")
	}
}

// The built-in model learns one question: first what a query is, then by reward which conventions hold. A run that is
// opened again continues at its step, and measures nothing twice.
func TestRun_Learns(t *testing.T) {
	if testing.Short() {
		t.Skip("trains")
	}
	set(t, base, builtin)
	set(t, dir, t.TempDir())
	set(t, level, world.Whole)
	set(t, steps, 13)
	set(t, demos, 240)
	set(t, batch, 1)
	set(t, group, 32)
	set(t, every, 20)
	set(t, count, 1)
	set(t, baseline, true)
	for _, began := range []int{0, 13} {
		e, err := open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.model.Step() != began {
			t.Errorf("the run is at step %d, want %d", e.model.Step(), began)
		}
		e.world.Train = e.world.Train[:1]
		if began == 0 { // nothing is measured again
			e.world.Held = e.world.Train
		} else {
			e.world.Held = nil
		}
		if err := e.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkLearned(t, e)
		if err := e.close(); err != nil {
			t.Error(err)
		}
	}
}

// checkLearned checks what a run of TestRun_Learns has logged: a query is learned at step 1, and conventions after it.
func checkLearned(t *testing.T, e *experiment) {
	t.Helper()
	rows, err := e.backend.History(t.Context(), e.model)
	if err != nil {
		t.Fatal(err)
	}
	var measured []int
	for _, row := range rows {
		if _, ok := row.Metrics["val/right"]; ok {
			measured = append(measured, row.Step)
		}
	}
	if want := []int{0, 1, 13}; !slices.Equal(measured, want) {
		t.Errorf("measured at steps %v, want %v", measured, want)
	}
	for step, least := range map[int]float64{0: 0, 1: 0.1, 13: 1} {
		if mean, ok := art.Logged(rows, "val/reward", step); !ok || mean < least || step == 0 && mean > 0 {
			t.Errorf("step %d: reward %v, %v, want %v", step, mean, ok, least)
		}
	}
	if share, ok := art.Logged(rows, "baseline/right", 0); !ok || share != 0 {
		t.Errorf("the untrained model is right in %v, %v", share, ok)
	}
	for _, split := range []string{"val", "baseline"} {
		before, err := e.stored(split, 0)
		now, errNow := e.stored("val", e.model.Step())
		if err != nil || errNow != nil || before == nil || now == nil {
			t.Fatalf("%s: %v, %v, %v, %v", split, before, now, err, errNow)
		}
		if g := gain(before, now); g.Better != 1 || g.N() != 1 {
			t.Errorf("%s: gain %v, want one better", split, g)
		}
	}
}
