package server

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/dataset"
	"github.com/goart-dev/art/internal/dev/arttest"
)

var update = flag.Bool("update", false, "write the requests of the Python clients, which ART_PYTHON runs, to testdata")

// langgraphRequests has what the agent of internal/dev/conformance/langgraph sends, one request a line.
const langgraphRequests = "testdata/rollouts/langgraph.jsonl"

// sentRequest is a request of a client. ROLLOUT in its path stands for the id.
type sentRequest struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body"`
}

// multiplier calls the tool when there is one and its result is not there yet, and answers then.
func multiplier(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
	if last := req.Messages[len(req.Messages)-1]; len(req.Tools) > 0 && last.Role != art.RoleTool {
		id := fmt.Sprint("call-", len(req.Messages))
		return art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{
			{ID: id, Name: "multiply", Arguments: `{"a": 6, "b": 7}`},
		}}, nil
	}
	return art.Assistant("It is 42."), nil
}

// TestRollouts_LangGraphReplayed sends what a LangGraph agent has sent. To record it again:
//
//	ART_PYTHON=python go test ./backend/server -run LangGraph -update
//
// with a Python that has the packages of internal/dev/conformance/langgraph/requirements.txt.
func TestRollouts_LangGraphReplayed(t *testing.T) {
	s := newRecording(t, &arttest.Backend{Reply: multiplier}, nil)
	data, err := os.ReadFile(langgraphRequests)
	if err != nil {
		t.Fatal(err)
	}
	id := ""
	for line := range strings.Lines(string(data)) {
		var sent sentRequest
		if err := json.Unmarshal([]byte(line), &sent); err != nil {
			t.Fatal(err)
		}
		status, answer := s.do("k1", sent.Method, strings.ReplaceAll(sent.Path, "ROLLOUT", id), string(sent.Body))
		if status >= 300 {
			t.Fatalf("%s %s: status %d: %s", sent.Method, sent.Path, status, answer)
		}
		if sent.Path == "/v1/rollouts" {
			var info rolloutInfo
			if err := json.Unmarshal([]byte(answer), &info); err != nil {
				t.Fatal(err)
			}
			id = info.ID
		}
	}
	s.checkLangGraph()
}

// TestRollouts_LangGraph runs the agent itself, with the Python that ART_PYTHON names.
func TestRollouts_LangGraph(t *testing.T) {
	python := os.Getenv("ART_PYTHON")
	if python == "" {
		t.Skip("ART_PYTHON is not set")
	}
	s := newRecording(t, &arttest.Backend{Reply: multiplier}, nil)
	var sent bytes.Buffer
	listening := httptest.NewServer(noting(t, &sent, s.handler))
	defer listening.Close()
	out, err := exec.CommandContext(t.Context(), python, "-B", "../../internal/dev/conformance/langgraph/agent.py",
		listening.URL, "k1").CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	s.checkLangGraph()
	if *update {
		if err := os.WriteFile(langgraphRequests, sent.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// checkLangGraph checks what was recorded: the conversation of the agent is one history, though it was rebuilt by two
// clients, and the helper's is another one.
func (s *recording) checkLangGraph() {
	s.t.Helper()
	g := s.next()
	if len(g.Trajectories) != 1 {
		s.t.Fatalf("group %+v", g)
	}
	tr := g.Trajectories[0]
	wantEqual(s.t, "agent", texts(&tr.History), []string{
		"Use the tool.", "What is 6 times 7?", "*", "42", "It is 42.*", "Again, please.", "*", "42", "It is 42.*",
	})
	wantEqual(s.t, "histories", len(tr.Histories()), 2)
	wantEqual(s.t, "helper", texts(&tr.AdditionalHistories[0]), []string{"Summarize: 42.", "It is 42.*"})
	wantEqual(s.t, "logs", tr.Logs, []string{
		"additional_histories[0]: message 0 (user) differs from that of the main history in its role",
	})
	wantEqual(s.t, "tools", []string{tr.Tools[0].Name}, []string{"multiply"})
	wantEqual(s.t, "metrics", tr.Metrics, map[string]float64{"right": 2})
	wantEqual(s.t, "reward", tr.Reward, 1.0)
}

// noting writes down the requests that a handler serves.
func noting(t *testing.T, out io.Writer, h http.Handler) http.Handler {
	id := regexp.MustCompile(`/(r|v1/rollouts)/[A-Z0-9]+/`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		line := sentRequest{r.Method, id.ReplaceAllString(r.URL.Path, "/$1/ROLLOUT/"), body}
		if err := dataset.WriteJSONL(out, line); err != nil {
			t.Error(err)
		}
		h.ServeHTTP(w, r)
	})
}
