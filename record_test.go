package art_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// texts returns role and content of each message, with a star where there is a sample.
func texts(h *art.History) (out []string) {
	for _, m := range h.Messages {
		star := ""
		if m.Sample != nil {
			star = "*"
		}
		out = append(out, string(m.Role)+":"+m.Content+star)
	}
	return out
}

// histories returns the texts of all histories.
func histories(t *art.Trajectory) (out [][]string) {
	for _, h := range t.Histories() {
		out = append(out, texts(h))
	}
	return out
}

// counting replies with "1", "2", ... in the order of calls.
func counting() *arttest.Backend {
	var mu sync.Mutex
	n := 0
	return &arttest.Backend{Reply: func(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
		mu.Lock()
		defer mu.Unlock()
		n++
		return art.Assistant(fmt.Sprint(n)), nil
	}}
}

// record runs f and fails the test when it fails.
func record(t *testing.T, f func(ctx context.Context) error) *art.Trajectory {
	t.Helper()
	tr, err := art.Record(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// complete sends messages and returns the error only.
func complete(ctx context.Context, m *art.Model, messages ...art.Message) error {
	_, err := m.Complete(ctx, &art.History{Messages: messages}, nil)
	return err
}

func TestRecord_Conversation(t *testing.T) {
	m := registered(t, counting(), nil)
	var talk *art.Trajectory
	tr := record(t, func(ctx context.Context) error {
		talk = art.NewTrajectory(art.System("s"))
		for _, question := range []string{"a", "b", "c"} {
			talk.Add(art.User(question))
			if _, err := m.Chat(ctx, talk, nil); err != nil {
				return err
			}
		}
		return nil
	})
	wantEqual(t, "messages", tr.Messages, talk.Messages)
	if len(tr.AdditionalHistories) != 0 || tr.Duration <= 0 || tr.Start.IsZero() {
		t.Errorf("%d additional histories, start %v, duration %v", len(tr.AdditionalHistories), tr.Start, tr.Duration)
	}
}

// A client that keeps the conversation in its own structs sends back less than it received. The recording has
// everything.
func TestRecord_HTTPClientRebuildsMessages(t *testing.T) {
	replies := []art.Message{
		{Role: art.RoleAssistant, Reasoning: "hm", ToolCalls: []art.ToolCall{{ID: "c1", Name: "f", Arguments: `{"b": 1, "a": [2.50]}`}}},
		{Role: art.RoleAssistant, Content: "done"},
		{Role: art.RoleAssistant, Content: "bye"},
	}
	turn := 0
	m := registered(t, &arttest.Backend{Reply: func(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
		turn++
		return replies[turn-1], nil
	}}, nil)
	tool := `[{"type":"function","function":{"name":"f","parameters":{"z":1,"a":2}}}]`
	user := `{"role":"user","content":[{"type":"text","text":"go"},{"type":"image_url","image_url":{"url":"x"}}]}`
	called := `{"role":"assistant","name":"helper","content":"","tool_calls":[{"function":{"arguments":"{\"a\":[2.50],` +
		`\"b\":1}","name":"f"},"id":"c1","type":"function"}]}`
	result := `{"tool_call_id":"c1","role":"tool","content":"ok"}`
	tr := record(t, func(ctx context.Context) error {
		for _, messages := range []string{
			user,
			user + "," + called + "," + result,
			user + "," + called + "," + result + `,{"content":[{"type":"text","text":"done"}],"role":"assistant","refusal":null},{"role":"user","content":"more"}`,
		} {
			if err := post(ctx, m, `{"messages":[`+messages+`],"tools":`+tool+`}`); err != nil {
				return err
			}
		}
		return nil
	})
	wantEqual(t, "histories", histories(tr), [][]string{
		{"user:go", "assistant:*", "tool:ok", "assistant:done*", "user:more", "assistant:bye*"},
	})
	wantEqual(t, "tools", encode(t, tr.Tools), tool)
	got := tr.Messages[1]
	if got.Sample = nil; !sameJSON(t, []byte(encode(t, got)), []byte(encode(t, replies[0]))) {
		t.Errorf("recorded %s, replied %s", encode(t, got), encode(t, replies[0]))
	}
	wantEqual(t, "the question", encode(t, tr.Messages[0]), user)
}

// post sends a request through the model's HTTP client.
func post(ctx context.Context, m *art.Model, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://art.invalid/v1/chat/completions",
		bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	response, err := m.HTTPClient().Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(string(text))
	}
	return err
}

// A request that continues no history starts another one, and no sample is in two.
func TestRecord_Forks(t *testing.T) {
	call := func(id, name, arguments string) art.Message {
		return art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{ID: id, Name: name, Arguments: arguments}}}
	}
	image := func(url string) art.Message {
		return decode[art.Message](t, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"`+url+`"}}]}`)
	}
	named := func(name string) art.Message { m := art.User("u"); m.Name = name; return m }
	cases := []struct {
		name  string
		first art.Message
		again art.Message
		forks bool
	}{
		{"same", art.User("u"), art.User("u"), false},
		{"content", art.User("u"), art.User("v"), true},
		{"role", art.User("u"), art.System("u"), true},
		{"name", named("a"), named("b"), true},
		{"tool call id", art.ToolResult("1", "u"), art.ToolResult("2", "u"), true},
		{"call", call("1", "f", "{}"), call("1", "f", "{}"), false},
		{"spaced arguments", call("1", "f", "{}"), call("1", "f", "{ }"), false},
		{"same broken arguments", call("1", "f", `{"a"`), call("1", "f", `{"a"`), false},
		{"call id", call("1", "f", "{}"), call("2", "f", "{}"), true},
		{"call name", call("1", "f", "{}"), call("1", "g", "{}"), true},
		{"call arguments", call("1", "f", `{"a":1}`), call("1", "f", `{"a":2}`), true},
		{"broken arguments", call("1", "f", `{"a"`), call("1", "f", `{"a" `), true},
		{"number of calls", call("1", "f", "{}"), art.Assistant(""), true},
		{"same image", image("a"), image("a"), false},
		{"another image", image("a"), image("b"), true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := registered(t, counting(), nil)
			tr := record(t, func(ctx context.Context) error {
				if err := complete(ctx, m, c.first); err != nil {
					return err
				}
				return complete(ctx, m, c.again, art.Assistant("1"), art.User("more"))
			})
			if forks := len(tr.AdditionalHistories) == 1; forks != c.forks || len(tr.Samples()) != 2 {
				t.Errorf("histories: %q", histories(tr))
			}
		})
	}
}

func TestRecord_ForkRepeatsWithoutSamples(t *testing.T) {
	m := registered(t, counting(), nil)
	tr := record(t, func(ctx context.Context) error {
		base := art.NewTrajectory(art.User("u"))
		if _, err := m.Chat(ctx, base, nil); err != nil {
			return err
		}
		for _, question := range []string{"left", "right", "right"} {
			branch := base.Clone() // its messages carry the samples of base
			branch.Add(art.User(question))
			if _, err := m.Chat(ctx, branch, nil); err != nil {
				return err
			}
			if question == "left" {
				continue
			}
			branch.Add(art.User("on"))
			if _, err := m.Chat(ctx, branch, nil); err != nil {
				return err
			}
		}
		return nil
	})
	wantEqual(t, "histories", histories(tr), [][]string{
		{"user:u", "assistant:1*", "user:left", "assistant:2*"},
		{"user:u", "assistant:1", "user:right", "assistant:3*", "user:on", "assistant:4*"},
		{"user:u", "assistant:1", "user:right", "assistant:5*", "user:on", "assistant:6*"},
	})
}

// Of two histories that a request repeats, the longer is continued.
func TestRecord_ContinuesTheLongest(t *testing.T) {
	m := registered(t, &arttest.Backend{Reply: arttest.Script("x")}, nil)
	u, x := art.User("u"), art.Assistant("x")
	tr := record(t, func(ctx context.Context) error {
		return errors.Join(
			complete(ctx, m, u),
			complete(ctx, m, u), // again: the same text
			complete(ctx, m, u, x, u),
			complete(ctx, m, u, x, u, x, u),
		)
	})
	wantEqual(t, "histories", histories(tr), [][]string{
		{"user:u", "assistant:x*", "user:u", "assistant:x*", "user:u", "assistant:x*"},
		{"user:u", "assistant:x*"},
	})
}

func TestRecord_OtherToolsFork(t *testing.T) {
	m := registered(t, counting(), nil)
	tool := func(schema string) []art.Tool {
		return []art.Tool{{Name: "f", Parameters: json.RawMessage(schema)}}
	}
	tr := record(t, func(ctx context.Context) error {
		h := art.History{Messages: []art.Message{art.User("u")}, Tools: tool(`{"a":1}`)}
		_, err := m.Complete(ctx, &h, nil)
		h.Add(art.Assistant("1"), art.User("v"))
		h.Tools = tool(`{ "a": 1 }`)
		_, err2 := m.Complete(ctx, &h, nil)
		h.Add(art.Assistant("2"), art.User("w"))
		h.Tools = tool(`{"a":2}`)
		_, err3 := m.Complete(ctx, &h, nil)
		return errors.Join(err, err2, err3)
	})
	wantEqual(t, "histories", histories(tr), [][]string{
		{"user:u", "assistant:1*", "user:v", "assistant:2*"},
		{"user:u", "assistant:1", "user:v", "assistant:2", "user:w", "assistant:3*"},
	})
	wantEqual(t, "tools of the fork", tr.AdditionalHistories[0].Tools, tool(`{"a":2}`))
}

// A sample from before the recording is kept.
func TestRecord_KeepsForeignSamples(t *testing.T) {
	m := registered(t, counting(), nil)
	tr := record(t, func(ctx context.Context) error {
		return complete(ctx, m, art.User("u"), sampled("before", 0), art.User("v"))
	})
	wantEqual(t, "histories", histories(tr), [][]string{{"user:u", "assistant:before*", "user:v", "assistant:1*"}})
}

func TestRecord_Fails(t *testing.T) {
	boom := errors.New("boom")
	m := registered(t, counting(), nil)
	tr, err := art.Record(t.Context(), func(ctx context.Context) error {
		return errors.Join(complete(ctx, m, art.User("u")), boom)
	})
	if !errors.Is(err, boom) {
		t.Errorf("error is %v", err)
	}
	wantEqual(t, "histories", histories(tr), [][]string{{"user:u", "assistant:1*"}})
	empty, err := art.Record(t.Context(), func(context.Context) error { return boom })
	if err != boom || len(empty.Messages) != 0 { //nolint:errorlint // it is returned unwrapped
		t.Errorf("%d messages, error %v", len(empty.Messages), err)
	}
}

func TestRecord_EndsWithItsFunction(t *testing.T) {
	m := registered(t, counting(), nil)
	var late context.Context
	tr := record(t, func(ctx context.Context) error {
		late = ctx
		return complete(ctx, m, art.User("u"))
	})
	took := tr.Duration
	if err := complete(late, m, art.User("u"), art.Assistant("1"), art.User("late")); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "histories", histories(tr), [][]string{{"user:u", "assistant:1*"}})
	wantEqual(t, "duration", tr.Duration, took)
}

func TestRecord_Nested(t *testing.T) {
	m := registered(t, counting(), nil)
	var inner *art.Trajectory
	outer := record(t, func(ctx context.Context) error {
		var err error
		inner, err = art.Record(ctx, func(ctx context.Context) error { return complete(ctx, m, art.User("in")) })
		return errors.Join(err, complete(ctx, m, art.User("out")))
	})
	wantEqual(t, "inner", histories(inner), [][]string{{"user:in", "assistant:1*"}})
	wantEqual(t, "outer", histories(outer), [][]string{{"user:out", "assistant:2*"}})
}

// Concurrent sub-agents each get a complete history, in order.
func TestRecord_Concurrent(t *testing.T) {
	m := registered(t, &arttest.Backend{}, nil)
	const agents, turns = 8, 5
	tr := record(t, func(ctx context.Context) error {
		var all sync.WaitGroup
		errs := make([]error, agents)
		for i := range agents {
			all.Go(func() {
				talk := art.NewTrajectory(art.System(fmt.Sprint("agent ", i)))
				for range turns {
					talk.Add(art.User("go on"))
					if _, err := m.Chat(ctx, talk, nil); err != nil {
						errs[i] = err
					}
				}
			})
		}
		all.Wait()
		return errors.Join(errs...)
	})
	if len(tr.Histories()) != agents || len(tr.Samples()) != agents*turns {
		t.Errorf("%d histories, %d samples", len(tr.Histories()), len(tr.Samples()))
	}
	for _, h := range tr.Histories() {
		if len(h.Messages) != 1+2*turns {
			t.Errorf("history: %q", texts(h))
		}
	}
}

// A function that does not pass its context to the client records nothing, which is an error.
func TestRecord_NothingRecorded(t *testing.T) {
	m := registered(t, counting(), nil)
	silent := registered(t, &arttest.Backend{Reply: func(
		context.Context, *art.Model, *art.ChatRequest,
	) (art.Message, error) {
		return art.Message{}, errors.New("out of order")
	}}, nil)
	for name, f := range map[string]func(ctx context.Context) error{
		"another context": func(context.Context) error { return complete(t.Context(), m, art.User("u")) },
		"no call":         func(context.Context) error { return nil },
		"failed call":     func(ctx context.Context) error { _ = complete(ctx, silent, art.User("u")); return nil },
		"nested": func(ctx context.Context) error {
			_, err := art.Record(ctx, func(ctx context.Context) error { return complete(ctx, m, art.User("u")) })
			return err
		},
	} {
		tr, err := art.Record(t.Context(), f)
		wantErr(t, err, art.ErrNothingRecorded, "art: record: ", "pass the context")
		if tr == nil || len(tr.Messages) != 0 || tr.Start.IsZero() {
			t.Errorf("%s: trajectory %+v", name, tr)
		}
	}
}
