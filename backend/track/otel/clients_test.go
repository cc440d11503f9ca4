package otel

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// sent is what a service received of a rollout, with names in place of ids and without times.
type sent struct {
	Traces map[string]string `json:"traces"` // where to, and by whom
	Spans  []sentSpan        `json:"spans"`
	Scores []sentScore       `json:"scores"`
}

type sentSpan struct {
	Name   string         `json:"name"`
	Parent string         `json:"parent"`
	Type   string         `json:"type"`
	Model  string         `json:"model"`
	Usage  map[string]int `json:"usage"`
	Input  any            `json:"input"`
	Output any            `json:"output"`
}

type sentScore struct {
	Path          string         `json:"path"`
	Authorization string         `json:"authorization"`
	Body          map[string]any `json:"body"`
}

// judged makes a rollout with a call of a tool, which a judge scores.
func judged(t *testing.T, o *Options) {
	t.Helper()
	o.Content = true
	spans, err := New(o)
	require.NoError(t, err)
	turn := 0
	reply := func(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
		if turn++; turn > 1 {
			return art.Assistant("four"), nil
		}
		call := art.ToolCall{ID: "c", Name: "add", Arguments: `[2,2]`}
		return art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{call}}, nil
	}
	m := art.NewModel("player", &art.ModelOptions{Events: spans.Events()})
	require.NoError(t, m.Register(t.Context(), &arttest.Backend{Reply: reply}))
	play := func(ctx context.Context, _ int) (*art.Trajectory, error) {
		x := art.NewTrajectory(art.User("2+2"))
		if _, err := m.Chat(ctx, x, nil); err != nil {
			return nil, err
		}
		x.Add(art.ToolResult("c", `{"sum":4}`))
		_, err := m.Chat(ctx, x, nil)
		return x, err
	}
	judge := func(_ context.Context, g *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) {
		x := g.Trajectories[0]
		x.Metrics["ruler_score"], x.Reward = 0.75, 0.75
		x.Logs = append(x.Logs, "ruler (judge): right")
		return []*art.TrajectoryGroup{g}, nil
	}
	_, err = art.GatherGroups(t.Context(), []int{0}, play,
		&art.GatherOptions{GroupSize: 1, Events: spans.Events(), After: judge})
	require.NoError(t, err)
	require.NoError(t, spans.Close())
}

// kinds are the types that Langfuse documents for the operations.
var kinds = map[string]string{"invoke_agent": "agent", "chat": "generation", "execute_tool": "tool"}

// contentKeys are the attributes with what went in and what came out, by operation.
var contentKeys = map[string][2]string{
	"chat":         {"gen_ai.input.messages", "gen_ai.output.messages"},
	"execute_tool": {"gen_ai.tool.call.arguments", "gen_ai.tool.call.result"},
}

// describeSpans writes spans as the services understand them.
func describeSpans(t *testing.T, spans []*tracepb.Span) (list []sentSpan, names map[string]string) {
	names = map[string]string{}
	for _, s := range spans {
		names[string(s.SpanId)] = s.Name
	}
	for _, s := range spans {
		a := plainAttributes(s.Attributes)
		operation := a["gen_ai.operation.name"].(string)
		one := sentSpan{Name: s.Name, Parent: names[string(s.ParentSpanId)], Type: kinds[operation]}
		if operation == "chat" {
			one.Model = a["gen_ai.request.model"].(string)
			one.Usage = map[string]int{
				"input":  int(a["gen_ai.usage.input_tokens"].(float64)),
				"output": int(a["gen_ai.usage.output_tokens"].(float64)),
			}
		}
		if keys, ok := contentKeys[operation]; ok {
			require.NoError(t, json.Unmarshal([]byte(a[keys[0]].(string)), &one.Input))
			require.NoError(t, json.Unmarshal([]byte(a[keys[1]].(string)), &one.Output))
		}
		list = append(list, one)
	}
	sortSpans(t, list)
	return list, names
}

// sortSpans sorts by name and input: spans that were sent side by side have no order.
func sortSpans(t *testing.T, list []sentSpan) {
	t.Helper()
	key := func(s sentSpan) string {
		input, err := json.Marshal(s.Input)
		require.NoError(t, err)
		return s.Name + "\x00" + string(input)
	}
	slices.SortStableFunc(list, func(a, b sentSpan) int { return cmp.Compare(key(a), key(b)) })
}

// asked returns what a client sent of the same rollout: what a script with the client prints, where the variable has
// its interpreter, and the recording otherwise.
func asked(t *testing.T, variable, script, golden string, ours sent) sent {
	t.Helper()
	want, err := os.ReadFile(golden)
	if python := os.Getenv(variable); python != "" {
		input, encoding := json.Marshal(inputOf(ours))
		require.NoError(t, encoding)
		file := filepath.Join(t.TempDir(), "ours.json")
		require.NoError(t, os.WriteFile(file, input, 0o666))
		cmd := exec.Command(python, "../../../internal/dev/conformance/trackers/"+script, file)
		cmd.Stderr = os.Stderr
		want, err = cmd.Output()
		if *update && err == nil {
			require.NoError(t, os.WriteFile(golden, want, 0o666))
		}
	}
	require.NoError(t, err)
	var client sent
	require.NoError(t, json.Unmarshal(want, &client))
	sortSpans(t, client.Spans)
	return client
}

// inputOf is what a client is told to send: spans, and scores as plain values.
func inputOf(ours sent) map[string]any {
	var scores []map[string]any
	for _, s := range ours.Scores {
		name, value, why := s.Body["name"], s.Body["value"], s.Body["comment"]
		if payload, ok := s.Body["payload"].(map[string]any); ok { // of Weave
			name, value, why = s.Body["feedback_type"], payload["value"], payload["explanation"]
		}
		scores = append(scores, map[string]any{"name": name, "value": value, "comment": why})
	}
	return map[string]any{"spans": ours.Spans, "scores": scores}
}

// unhex returns the bytes of an id.
func unhex(t *testing.T, id string) string {
	t.Helper()
	data, err := hex.DecodeString(id)
	require.NoError(t, err)
	return string(data)
}

// The Python client of Langfuse sends the same observations and scores of the same rollout to the same places. What it
// sent is recorded; internal/dev/conformance/trackers/score_langfuse.py says how to ask it again.
func TestLangfuse_Client(t *testing.T) {
	r := newReceiver(t)
	judged(t, Langfuse(r.URL, "pk-lf-1", "sk-lf-2"))
	const traces, scores = "/api/public/otel/v1/traces", "/api/public/scores"
	h := r.headers[traces]
	ours := sent{Traces: map[string]string{
		"path": traces, "authorization": h.Get("Authorization"), "version": h.Get("X-Langfuse-Ingestion-Version"),
	}}
	var names map[string]string
	ours.Spans, names = describeSpans(t, r.spans)
	for _, body := range r.posts[scores] {
		require.NotEmpty(t, body["timestamp"])
		delete(body, "timestamp")
		trace := body["traceId"].(string)
		body["id"], body["traceId"] = strings.Replace(body["id"].(string), trace, "TRACE", 1), "TRACE"
		body["observationId"] = names[unhex(t, body["observationId"].(string))]
		ours.Scores = append(ours.Scores, sentScore{scores, r.headers[scores].Get("Authorization"), body})
	}
	client := asked(t, "ART_LANGFUSE_PYTHON", "score_langfuse.py", "testdata/langfuse.json", ours)
	require.Equal(t, client, ours)
	require.Len(t, ours.Spans, 4)
	require.Len(t, ours.Scores, 2)
}

// The Python client of Weave makes the same calls and the same feedback of the same rollout. It sends calls in a form
// of its own, which are compared by what they say. internal/dev/conformance/trackers/feedback_weave.py says how to ask
// it again.
func TestWeave_Client(t *testing.T) {
	r := newReceiver(t)
	judged(t, Weave(r.URL, "team", "games", strings.Repeat("0", 40)))
	const feedback = "/feedback/create"
	ours := sent{Traces: map[string]string{"authorization": r.headers["/otel/v1/traces"].Get("Authorization")}}
	var names map[string]string
	ours.Spans, names = describeSpans(t, r.spans)
	for i := range ours.Spans { // which Weave takes from the attributes
		ours.Spans[i].Type, ours.Spans[i].Model, ours.Spans[i].Usage = "", "", nil
	}
	for _, body := range r.posts[feedback] {
		ref := body["weave_ref"].(string)
		at := strings.LastIndex(ref, "/") + 1
		body["weave_ref"] = ref[:at] + names[unhex(t, ref[at:])]
		ours.Scores = append(ours.Scores, sentScore{feedback, r.headers[feedback].Get("Authorization"), body})
	}
	client := asked(t, "ART_WEAVE_PYTHON", "feedback_weave.py", "testdata/weave.json", ours)
	require.Equal(t, client, ours)
	require.Len(t, ours.Spans, 4)
	require.Len(t, ours.Scores, 2)
}
