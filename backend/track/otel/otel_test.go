package otel

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// receiver is a service that takes traces, metrics and scores.
type receiver struct {
	*httptest.Server
	status int // 0 is 200

	mu      sync.Mutex
	spans   []*tracepb.Span
	metrics map[string]*metricspb.Metric
	posts   map[string][]map[string]any // bodies in JSON, by path
	headers map[string]http.Header      // of the last request, by path
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{
		metrics: map[string]*metricspb.Metric{}, posts: map[string][]map[string]any{}, headers: map[string]http.Header{},
	}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := bodyOf(req)
	if err == nil {
		err = r.take(req, body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	} else if r.status != 0 {
		w.WriteHeader(r.status)
	}
}

func (r *receiver) take(req *http.Request, body []byte) error {
	path := req.URL.Path
	r.headers[path] = req.Header
	switch {
	case r.status != 0:
		return nil
	case strings.HasSuffix(path, "/v1/traces"):
		var data tracepb.TracesData
		if err := proto.Unmarshal(body, &data); err != nil {
			return err
		}
		for _, resource := range data.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
		return nil
	case strings.HasSuffix(path, "/v1/metrics"):
		var data metricspb.MetricsData
		if err := proto.Unmarshal(body, &data); err != nil {
			return err
		}
		for _, resource := range data.ResourceMetrics {
			for _, scope := range resource.ScopeMetrics {
				for _, m := range scope.Metrics {
					r.metrics[m.Name] = m
				}
			}
		}
		return nil
	}
	var object map[string]any
	r.posts[path] = append(r.posts[path], nil)
	err := json.Unmarshal(body, &object)
	r.posts[path][len(r.posts[path])-1] = object
	return err
}

func bodyOf(req *http.Request) ([]byte, error) {
	if req.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(req.Body)
	}
	unzip, err := gzip.NewReader(req.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(unzip)
}

// named returns the spans whose name begins so.
func (r *receiver) named(prefix string) []*tracepb.Span {
	var out []*tracepb.Span
	for _, s := range r.spans {
		if strings.HasPrefix(s.Name, prefix) {
			out = append(out, s)
		}
	}
	return out
}

// attributesOf returns attributes as text.
func attributesOf(s *tracepb.Span) map[string]string {
	out := map[string]string{}
	for _, a := range s.Attributes {
		out[a.Key] = strings.TrimSpace(a.Value.String())
	}
	return out
}

// agents makes groups of two rollouts that call a tool. The second of the last scenario fails.
func agents(t *testing.T, events *art.Events, scenarios int) {
	t.Helper()
	reply := func(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
		if last := req.Messages[len(req.Messages)-1]; last.Role == art.RoleTool {
			return art.Assistant("the secret is 42"), nil
		}
		m := art.Assistant("")
		m.ToolCalls = []art.ToolCall{{ID: "c1", Name: "look", Arguments: `{"where":"box"}`}}
		return m, nil
	}
	m := art.NewModel("player", &art.ModelOptions{Events: events})
	require.NoError(t, m.Register(t.Context(), &arttest.Backend{Reply: reply}))
	play := func(ctx context.Context, scenario int) (*art.Trajectory, error) {
		x := art.NewTrajectory(art.User("find the secret"))
		if _, err := m.Chat(ctx, x, nil); err != nil {
			return nil, err
		}
		x.Add(art.ToolResult("c1", "a secret"))
		if _, err := m.Chat(ctx, x, nil); err != nil {
			return nil, err
		}
		x.Reward = 0.5
		if scenario == scenarios-1 {
			return nil, errors.New("secret failure")
		}
		return x, nil
	}
	judge := func(_ context.Context, g *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) {
		for _, x := range g.Trajectories {
			x.Metrics["ruler_score"], x.Reward = 0.75, 0.75
			x.Logs = append(x.Logs, "ruler (judge): found the secret")
		}
		return []*art.TrajectoryGroup{g}, nil
	}
	list := make([]int, scenarios)
	for i := range list {
		list[i] = i
	}
	_, err := art.GatherGroups(t.Context(), list, play,
		&art.GatherOptions{GroupSize: 2, MaxFailures: 2, Events: events, After: judge})
	require.NoError(t, err)
}

// A rollout is a trace with its completions, tools, and the reward after judging; nothing that was said is in it.
func TestTracker_Spans(t *testing.T) {
	r := newReceiver(t)
	spans, err := New(&Options{URL: r.URL + "/v1/traces", Headers: map[string]string{"x-key": "k"}})
	require.NoError(t, err)
	agents(t, spans.Events(), 2)
	require.NoError(t, spans.Close())
	require.Zero(t, spans.Dropped())
	require.Equal(t, "k", r.headers["/v1/traces"].Get("x-key"))

	rollouts := r.named("invoke_agent player")
	require.Len(t, rollouts, 4)
	require.Len(t, r.named("chat player"), 8)
	require.Len(t, r.named("execute_tool look"), 4)
	failed := 0
	for _, s := range rollouts {
		a := attributesOf(s)
		require.Equal(t, `string_value:"invoke_agent"`, strings.ReplaceAll(a["gen_ai.operation.name"], "  ", " "))
		if s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
			failed++
			require.Contains(t, a["error.type"], "errorString")
			require.Empty(t, s.Events)
			continue
		}
		require.Len(t, s.Events, 2)
		require.Equal(t, "gen_ai.evaluation.result", s.Events[0].Name)
		require.Equal(t, 0.75, s.Events[0].Attributes[1].Value.GetDoubleValue())
		require.Equal(t, "ruler", s.Events[1].Attributes[0].Value.GetStringValue())
		require.Contains(t, a["art.metrics.ruler_score"], "0.75")
	}
	require.Equal(t, 2, failed)
	for _, s := range append(r.named("chat"), r.named("execute_tool")...) {
		parent := rollouts[0]
		for _, p := range rollouts {
			if bytes.Equal(p.TraceId, s.TraceId) {
				parent = p
			}
		}
		require.Equal(t, parent.SpanId, s.ParentSpanId)
		require.LessOrEqual(t, parent.StartTimeUnixNano, s.StartTimeUnixNano)
		require.LessOrEqual(t, s.StartTimeUnixNano, s.EndTimeUnixNano)
	}
	for _, s := range r.spans {
		require.NotContains(t, s.String(), "secret")
		require.NotContains(t, s.String(), "box")
	}
}

// With Content, what was said is there in the form of the conventions.
func TestTracker_Content(t *testing.T) {
	r := newReceiver(t)
	spans, err := New(&Options{URL: r.URL + "/v1/traces", Content: true})
	require.NoError(t, err)
	agents(t, spans.Events(), 2)
	require.NoError(t, spans.Close())
	var answers, explained, messages int
	for _, s := range r.spans {
		for _, a := range s.Attributes {
			switch text := a.Value.GetStringValue(); {
			case a.Key == "gen_ai.output.messages" && strings.Contains(text, "42"):
				answers++
				require.JSONEq(t,
					`[{"role":"assistant","parts":[{"type":"text","content":"the secret is 42"}],"finish_reason":"stop"}]`, text)
			case a.Key == "gen_ai.tool.call.result":
				require.Equal(t, "a secret", text)
			case a.Key == "gen_ai.input.messages" && strings.Contains(text, "tool_call_response"):
				messages++
				require.JSONEq(t, `[{"role":"user","parts":[{"type":"text","content":"find the secret"}]},
					{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"look","arguments":{"where":"box"}}]},
					{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","result":"a secret"}]}]`, text)
			}
		}
		for _, e := range s.Events {
			if strings.Contains(e.String(), "found the secret") {
				explained++
			}
		}
	}
	require.Equal(t, []int{4, 4, 2}, []int{answers, messages, explained})
}

// A completion outside of a gather is a trace of its own.
func TestTracker_Lone(t *testing.T) {
	r := newReceiver(t)
	spans, err := New(&Options{URL: r.URL + "/v1/traces"})
	require.NoError(t, err)
	m := art.NewModel("player", &art.ModelOptions{Events: spans.Events()})
	require.NoError(t, m.Register(t.Context(), &arttest.Backend{}))
	_, err = m.Complete(t.Context(), &art.History{Messages: []art.Message{art.User("?")}}, nil)
	require.NoError(t, err)
	require.NoError(t, spans.Close())
	require.Len(t, r.spans, 1)
	require.Empty(t, r.spans[0].ParentSpanId)
	require.Equal(t, tracepb.Span_SPAN_KIND_CLIENT, r.spans[0].Kind)
}

// A receiver that hangs or answers 500 does not slow rollouts, and Close says what was lost.
func TestTracker_Failures(t *testing.T) {
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hanging.Close()
	defer close(release)
	broken := newReceiver(t)
	broken.status = http.StatusInternalServerError
	for name, url := range map[string]string{"hangs": hanging.URL, "500": broken.URL} {
		spans, err := New(&Options{URL: url + "/v1/traces", Timeout: 200 * time.Millisecond})
		require.NoError(t, err)
		start := time.Now()
		agents(t, spans.Events(), 10)
		require.Less(t, time.Since(start), 10*time.Second, name)
		err = spans.Close()
		require.ErrorContains(t, err, "were lost", name)
		require.Equal(t, err, spans.Close())
		require.Positive(t, spans.Dropped())
	}
}

// Many rollouts that end at once are not lost.
func TestTracker_Burst(t *testing.T) {
	r := newReceiver(t)
	spans, err := New(&Options{URL: r.URL + "/v1/traces"})
	require.NoError(t, err)
	agents(t, spans.Events(), 300)
	require.NoError(t, spans.Close())
	require.Len(t, r.named("invoke_agent player"), 600)
}

// Metrics have the names of either convention, and not of both.
func TestTracker_Metrics(t *testing.T) {
	for _, latest := range []bool{false, true} {
		r := newReceiver(t)
		spans, err := New(&Options{URL: r.URL + "/v1/traces", MetricsURL: r.URL + "/v1/metrics", LatestMetrics: &latest})
		require.NoError(t, err)
		agents(t, spans.Events(), 1)
		require.NoError(t, spans.Close())
		require.EqualValues(t, 4, r.metrics["gen_ai.client.operation.duration"].GetHistogram().DataPoints[0].Count)
		old, ok := r.metrics["gen_ai.client.token.usage"]
		require.Equal(t, !latest, ok)
		sum, ok := r.metrics["gen_ai.client.inference.usage.output_tokens"]
		require.Equal(t, latest, ok)
		if latest {
			require.Positive(t, sum.GetSum().DataPoints[0].GetAsInt())
			require.EqualValues(t, 2, r.metrics["gen_ai.invoke_agent.duration"].GetHistogram().DataPoints[0].Count)
		} else {
			require.Len(t, old.GetHistogram().DataPoints, 2, "input and output")
			require.Equal(t, 4.0, old.GetHistogram().DataPoints[0].ExplicitBounds[1])
		}
	}
}

// Langfuse gets scores on the traces that it got.
func TestLangfuse(t *testing.T) {
	r := newReceiver(t)
	o := Langfuse(r.URL+"/", "pk-lf-1", "sk-lf-2")
	o.Content = true
	spans, err := New(o)
	require.NoError(t, err)
	agents(t, spans.Events(), 2)
	require.NoError(t, spans.Close())
	h := r.headers["/api/public/otel/v1/traces"]
	require.Equal(t, "4", h.Get("X-Langfuse-Ingestion-Version"))
	require.Equal(t, "Basic cGstbGYtMTpzay1sZi0y", h.Get("Authorization"))
	scores := r.posts["/api/public/scores"]
	require.Len(t, scores, 4)
	require.Equal(t, "NUMERIC", scores[1]["dataType"])
	require.Equal(t, 0.75, scores[1]["value"])
	require.Equal(t, "ruler", scores[1]["name"])
	require.Equal(t, "ruler (judge): found the secret", scores[1]["comment"])
	require.Len(t, scores[1]["traceId"], 32)
	require.Equal(t, scores[1]["traceId"].(string)+"-ruler", scores[1]["id"])
}

// Weave gets feedback on the calls that it makes of spans.
func TestWeave(t *testing.T) {
	r := newReceiver(t)
	spans, err := New(Weave(r.URL, "team", "games", "key"))
	require.NoError(t, err)
	agents(t, spans.Events(), 2)
	require.NoError(t, spans.Close())
	require.Equal(t, "Basic YXBpOmtleQ==", r.headers["/otel/v1/traces"].Get("Authorization"))
	feedback := r.posts["/feedback/create"]
	require.Len(t, feedback, 4)
	require.Equal(t, "team/games", feedback[0]["project_id"])
	require.Equal(t, "reward", feedback[0]["feedback_type"])
	require.Equal(t, map[string]any{"value": 0.75}, feedback[0]["payload"])
	require.Regexp(t, "^weave:///team/games/call/[0-9a-f]{16}$", feedback[0]["weave_ref"])
}

// A URL without a scheme is an error that says how to write it.
func TestNew_Errors(t *testing.T) {
	_, err := New(&Options{URL: "localhost:4318"})
	require.ErrorContains(t, err, "http://localhost:4318/v1/traces")
}
