package otel

import (
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

var update = flag.Bool("update", false, "write testdata/decoded.json, with ART_OTLP_PYTHON")

// decoded is what opentelemetry-proto reads, without ids and times.
type decoded struct {
	Resource map[string]any `json:"resource"`
	Scope    string         `json:"scope"`
	Spans    []decodedSpan  `json:"spans"`
}

type decodedSpan struct {
	Name       string         `json:"name"`
	Kind       int            `json:"kind"`
	Parent     string         `json:"parent"`
	Status     int            `json:"status"`
	Ordered    bool           `json:"ordered"`
	Attributes map[string]any `json:"attributes"`
	Events     []decodedEvent `json:"events"`
}

type decodedEvent struct {
	Name       string         `json:"name"`
	Attributes map[string]any `json:"attributes"`
}

func plain(v *commonpb.AnyValue) any {
	switch v := v.Value.(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_IntValue:
		return float64(v.IntValue)
	case *commonpb.AnyValue_DoubleValue:
		return v.DoubleValue
	case *commonpb.AnyValue_ArrayValue:
		var out []any
		for _, x := range v.ArrayValue.Values {
			out = append(out, plain(x))
		}
		return out
	}
	return v.String()
}

func plainAttributes(list []*commonpb.KeyValue) map[string]any {
	out := map[string]any{}
	for _, a := range list {
		if a.Key != "art.gather" && a.Key != "gen_ai.response.id" {
			out[a.Key] = plain(a.Value)
		}
	}
	return out
}

// decode reads a request as read_otlp.py does.
func decode(t *testing.T, body []byte) decoded {
	var data tracepb.TracesData
	require.NoError(t, proto.Unmarshal(body, &data))
	require.Len(t, data.ResourceSpans, 1)
	resource := data.ResourceSpans[0]
	require.Len(t, resource.ScopeSpans, 1)
	out := decoded{Resource: plainAttributes(resource.Resource.Attributes), Scope: resource.ScopeSpans[0].Scope.Name}
	names := map[string]string{}
	for _, s := range resource.ScopeSpans[0].Spans {
		names[string(s.SpanId)] = s.Name
	}
	for _, s := range resource.ScopeSpans[0].Spans {
		span := decodedSpan{Name: s.Name, Kind: int(s.Kind), Parent: names[string(s.ParentSpanId)],
			Status: int(s.Status.GetCode()), Ordered: s.StartTimeUnixNano <= s.EndTimeUnixNano,
			Attributes: plainAttributes(s.Attributes), Events: []decodedEvent{}}
		for _, e := range s.Events {
			span.Events = append(span.Events, decodedEvent{e.Name, plainAttributes(e.Attributes)})
		}
		out.Spans = append(out.Spans, span)
	}
	return out
}

// oneRollout is a request with the spans of one rollout.
func oneRollout(t *testing.T) []byte {
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, _ = bodyOf(req)
	}))
	defer server.Close()
	spans, err := New(&Options{URL: server.URL + "/v1/traces", Content: true, Resource: map[string]string{"team": "a"}})
	require.NoError(t, err)
	turn := 0
	reply := func(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
		m := art.Assistant("four")
		if turn++; turn == 1 {
			m = art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{ID: "c", Name: "add", Arguments: `[2,2]`}}}
		}
		return m, nil
	}
	m := art.NewModel("player", &art.ModelOptions{Events: spans.Events()})
	require.NoError(t, m.Register(t.Context(), &arttest.Backend{Reply: reply}))
	_, err = art.GatherGroups(t.Context(), []int{0}, func(ctx context.Context, _ int) (*art.Trajectory, error) {
		x := art.NewTrajectory(art.User("2+2"))
		if _, err := m.Chat(ctx, x, nil); err != nil {
			return nil, err
		}
		x.Add(art.ToolResult("c", "4"))
		x.Reward, x.Metrics["turns"], x.Metadata["easy"] = 1, 2, true
		_, err := m.Chat(ctx, x, &art.ChatOptions{MaxTokens: new(9), TopK: new(3), Stop: []string{"."}})
		return x, err
	}, &art.GatherOptions{GroupSize: 1, Events: spans.Events()})
	require.NoError(t, err)
	require.NoError(t, spans.Close())
	return body
}

// opentelemetry-proto reads what was sent. What it read is recorded; internal/dev/conformance/trackers/read_otlp.py
// says how to ask it again.
func TestTracker_Decoded(t *testing.T) {
	body := oneRollout(t)
	const golden = "testdata/decoded.json"
	want, err := os.ReadFile(golden)
	if python := os.Getenv("ART_OTLP_PYTHON"); python != "" {
		file := filepath.Join(t.TempDir(), "request")
		require.NoError(t, os.WriteFile(file, body, 0o666))
		cmd := exec.Command(python, "../../../internal/dev/conformance/trackers/read_otlp.py", file)
		cmd.Stderr = os.Stderr
		want, err = cmd.Output()
		if *update && err == nil {
			require.NoError(t, os.WriteFile(golden, want, 0o666))
		}
	}
	require.NoError(t, err)
	var recorded decoded
	require.NoError(t, json.Unmarshal(want, &recorded))
	require.Equal(t, recorded, decode(t, body))
	require.Len(t, recorded.Spans, 4)
	require.Equal(t, "invoke_agent player", recorded.Spans[3].Name)
	require.Equal(t, "execute_tool add", recorded.Spans[1].Name)
	require.Equal(t, "invoke_agent player", recorded.Spans[1].Parent)
}
