package art_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// askRecorded makes a completion that r records, and fails the test when it fails.
func askRecorded(t *testing.T, m *art.Model, r *art.Recorder, tools []art.Tool, messages ...art.Message) {
	t.Helper()
	if _, err := m.Complete(r.Context(t.Context()), &art.History{Messages: messages, Tools: tools}, nil); err != nil {
		t.Fatal(err)
	}
}

// The logs of a trajectory say for each additional history why it is one.
func TestRecorder_ForkReasons(t *testing.T) {
	u, v, x := art.User("u"), art.User("v"), art.Assistant("x")
	call := x
	call.ToolCalls = []art.ToolCall{{ID: "1", Name: "f", Arguments: "{}"}}
	tools := []art.Tool{{Name: "f", Parameters: json.RawMessage(`{}`)}}
	named := u
	named.Name = "Ann"
	cases := map[string]struct {
		tools    []art.Tool
		messages []art.Message
	}{
		"the request ends before message 1 of the main history: it was sent again, or is another branch": {nil, []art.Message{u}},
		"the request ends before message 3 of the main history: it was sent again, or is another branch": {nil, []art.Message{u, x, v}},
		"message 0 (user) differs from that of the main history in its content":                          {nil, []art.Message{v}},
		"message 0 (user) differs from that of the main history in its name":                             {nil, []art.Message{named}},
		"message 1 (assistant) differs from that of the main history in its tool calls":                  {nil, []art.Message{u, call, v}},
		"message 2 (tool) differs from that of the main history in its role":                             {nil, []art.Message{u, x, art.ToolResult("1", "v")}},
		"the tools differ from those of the main history":                                                {tools, []art.Message{u, x, v, x, u}},
	}
	for reason, c := range cases {
		m, r := registered(t, &arttest.Backend{Reply: arttest.Script("x")}, nil), art.NewRecorder()
		askRecorded(t, m, r, nil, u)
		askRecorded(t, m, r, nil, u, x, v)
		askRecorded(t, m, r, c.tools, c.messages...)
		tr := r.Close()
		wantEqual(t, "logs", tr.Logs, []string{"additional_histories[0]: " + reason})
		if len(tr.AdditionalHistories) != 1 || len(tr.Samples()) != 3 {
			t.Errorf("histories: %q", histories(tr))
		}
	}
}

// The history that a request repeats furthest is the one that is named.
func TestRecorder_ForkReasonNamesTheClosest(t *testing.T) {
	m, r := registered(t, counting(), nil), art.NewRecorder()
	askRecorded(t, m, r, nil, art.System("a"), art.User("u"))
	askRecorded(t, m, r, nil, art.System("b"), art.User("u"))
	askRecorded(t, m, r, nil, art.System("b"), art.User("w"))
	wantEqual(t, "logs", r.Close().Logs, []string{
		"additional_histories[0]: message 0 (system) differs from that of the main history in its content",
		"additional_histories[1]: message 1 (user) differs from that of additional_histories[0] in its content",
	})
}

// A client never has a reply that the closed recorder lacks.
func TestRecorder_LateCompletionFails(t *testing.T) {
	r := art.NewRecorder()
	m := registered(t, &arttest.Backend{Reply: func(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
		r.Close() // while the model samples
		return art.Assistant("late"), nil
	}}, nil)
	_, err := m.Complete(r.Context(t.Context()), &art.History{Messages: []art.Message{art.User("u")}}, nil)
	wantErr(t, err, art.ErrRecordingEnded, "art: record: ")
	if tr := r.Close(); len(tr.Messages) != 0 || r.Completions() != 0 {
		t.Errorf("recorded %q", texts(&tr.History))
	}
}

// A snapshot does not change when the recording goes on.
func TestRecorder_SnapshotIsACopy(t *testing.T) {
	m, r := registered(t, counting(), nil), art.NewRecorder()
	askRecorded(t, m, r, nil, art.User("u"))
	early := r.Snapshot()
	askRecorded(t, m, r, nil, art.User("u"), art.Assistant("1"), art.User("v"))
	wantEqual(t, "early", histories(early), [][]string{{"user:u", "assistant:1*"}})
	wantEqual(t, "closed", histories(r.Close()), [][]string{{"user:u", "assistant:1*", "user:v", "assistant:2*"}})
	closed, again := r.Close(), r.Close()
	if r.Completions() != 2 || early.Duration != 0 || again != closed || closed.Duration <= 0 {
		t.Errorf("%d completions, durations %v and %v", r.Completions(), early.Duration, closed.Duration)
	}
}
