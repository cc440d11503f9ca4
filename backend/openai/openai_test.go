package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/backendtest"
	"github.com/goart-dev/art/backend/openai"
	"github.com/goart-dev/art/backend/rundir"
)

func TestContract(t *testing.T) {
	backendtest.RunHosted(t, func(t *testing.T) art.Backend {
		return open(t, newServer(t, said("Green.")), openai.Options{})
	})
}

func TestComplete_Request(t *testing.T) {
	s := newServer(t, said("Hi."))
	m := register(t, open(t, s, openai.Options{Extra: []byte(`{"user": "me", "top_p": null}`)}), "some-model")
	seed, limit, top := uint64(1<<63+5), 7, 3
	response, err := complete(t, m, &art.ChatOptions{Seed: &seed, MaxTokens: &limit, TopK: &top, Stop: []string{"\n"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"model": `"some-model"`, "seed": "-9223372036854775803", "max_tokens": "7", "max_completion_tokens": "", "top_k": "3",
		"temperature": "1", "top_p": "", "user": `"me"`, "stop": `["\n"]`, "tools": "",
		"messages": `[{"role":"user","content":"Hello?"}]`,
	} {
		if got := s.field(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := s.headers[0].Get("Authorization"); got != "Bearer "+key {
		t.Errorf("Authorization is %q", got)
	}
	if response.Message.Content != "Hi." || response.Message.Sample != nil || response.Finish != art.FinishStop {
		t.Errorf("response %+v", response)
	}
	if want := (art.Usage{PromptTokens: 1000, CachedTokens: 200, CompletionTokens: 500}); response.Usage != want {
		t.Errorf("usage %+v", response.Usage)
	}
}

// TestChat_Tools plays a turn with a tool: what the server returned beyond the message is not sent back.
func TestChat_Tools(t *testing.T) {
	s := newServer(t, reply(200, `{"id":"x","choices":[{"message":{"content":null,"reasoning":"A tool.","refusal":null,
		"tool_calls":[{"id":"","type":"function","function":{"name":"add","arguments":"{\"a\": 1}"}}]},
		"finish_reason":"stop"}]}`), said("It is 2."))
	m := register(t, open(t, s, openai.Options{}), "m")
	trajectory := art.NewTrajectory(art.User("1+1?"))
	schema := json.RawMessage(`{"type":"object","properties":{"z":{},"a":{}}}`)
	trajectory.Tools = []art.Tool{{Name: "add", Parameters: schema}}
	message, err := m.Chat(t.Context(), trajectory, nil)
	if err != nil {
		t.Fatal(err)
	}
	if message.Reasoning != "A tool." || len(message.ToolCalls) != 1 || len(message.ToolCalls[0].ID) != 9 {
		t.Fatalf("message %+v", message)
	}
	trajectory.Add(art.ToolResult(message.ToolCalls[0].ID, "2"))
	if _, err := m.Chat(t.Context(), trajectory, nil); err != nil {
		t.Fatal(err)
	}
	want := `[{"role":"user","content":"1+1?"},{"role":"assistant","content":null,"reasoning_content":"A tool.",` +
		`"tool_calls":[{"id":"` + message.ToolCalls[0].ID + `","type":"function","function":{"name":"add","arguments":"{\"a\": 1}"}}]},` +
		`{"role":"tool","content":"2","tool_call_id":"` + message.ToolCalls[0].ID + `"}]`
	if got := s.field("messages"); got != want {
		t.Errorf("messages are\n%s, want\n%s", got, want)
	}
	if tools := s.field("tools"); !strings.Contains(tools, `"z":{},"a":{}`) {
		t.Errorf("tools %s", tools)
	}
}

func TestComplete_Sample(t *testing.T) {
	exact := `{"id":"x","prompt_token_ids":[1,2],"choices":[{"message":{"role":"assistant","content":"ab"},
		"finish_reason":"stop","token_ids":[3,4],"logprobs":{"content":[{"token":"a","logprob":-0.5,"bytes":null,
		"top_logprobs":[{"token":"a","logprob":-0.5,"bytes":[97]}]},{"token":"b","logprob":LAST,"top_logprobs":[]}]}}]}`
	hot, narrow := 0.5, 0.9
	for _, test := range []struct {
		name, last string
		opts       *art.ChatOptions
		frozen     bool
		want       bool
	}{
		{"exact", "-1", nil, false, true},
		{"frozen", "-1", nil, true, false},
		{"temperature", "-1", &art.ChatOptions{Temperature: &hot}, false, false},
		{"top-p", "-1", &art.ChatOptions{TopP: &narrow}, false, false},
		{"floored", "-9999.0", nil, false, false},
		{"a logprob too many", `-1},{"token":"c","logprob":-1`, nil, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newServer(t, reply(200, strings.ReplaceAll(exact, "LAST", test.last)))
			b := open(t, s, openai.Options{Extra: []byte(openai.ExactTokens)})
			m := art.NewModel("m", &art.ModelOptions{Frozen: test.frozen})
			if err := m.Register(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			response, err := complete(t, m, test.opts)
			if err != nil {
				t.Fatal(err)
			}
			sample := response.Message.Sample
			if (sample != nil) != test.want {
				t.Fatalf("sample is %+v", sample)
			}
			if test.want && (!slices.Equal(sample.IDs, []int32{3, 4}) || !slices.Equal(sample.Logprobs, []float32{-0.5, -1}) ||
				!slices.Equal(sample.PromptIDs, []int32{1, 2}) || sample.Finish != art.FinishStop) {
				t.Errorf("sample is %+v", sample)
			}
		})
	}
}

func TestOpen_Invalid(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	_, err := openai.Open(t.Context(), nil)
	if !errors.Is(err, art.ErrInvalid) || !strings.Contains(err.Error(), "OPENAI_API_KEY") {
		t.Errorf("without a key: %v", err)
	}
	urls := []string{"localhost:8000", "ftp://host", "http://user:pw@host/v1", "http://host/v1?key=" + key, "%"}
	for _, url := range urls {
		_, err := openai.Open(t.Context(), &openai.Options{BaseURL: url, MaxSpend: -1, Extra: []byte("[]")})
		if !errors.Is(err, art.ErrInvalid) || !strings.Contains(err.Error(), "BaseURL") ||
			!strings.Contains(err.Error(), "MaxSpend") || !strings.Contains(err.Error(), "Extra") {
			t.Errorf("%s: %v", url, err)
		}
		if strings.Contains(err.Error(), key) {
			t.Errorf("the error has the key: %v", err)
		}
	}
}

// TestOpen_KeyStaysWithItsHost: the key of OpenAI in the environment is not sent to other servers.
func TestOpen_KeyStaysWithItsHost(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", key)
	s := newServer(t, said("Hi."))
	for _, variable := range []string{"", s.URL + "/v1"} { // the key belongs to the server of OPENAI_BASE_URL
		t.Setenv("OPENAI_BASE_URL", variable)
		opts := &openai.Options{Dir: t.TempDir()}
		if variable == "" {
			opts.BaseURL = s.URL + "/v1"
		}
		b, err := openai.Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if _, err := complete(t, register(t, b, "m"), nil); err != nil {
			t.Fatal(err)
		}
		if got, want := s.headers[len(s.headers)-1].Get("Authorization") != "", variable != ""; got != want {
			t.Errorf("OPENAI_BASE_URL is %q: the key was sent: %v, want %v", variable, got, want)
		}
	}
}

func TestRegister_Refuses(t *testing.T) {
	b := open(t, newServer(t, said("")), openai.Options{})
	m := art.NewModel("m", &art.ModelOptions{ToolFormat: "hermes"})
	if err := m.Register(t.Context(), b); !errors.Is(err, art.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
}

// TestHTTPClient: an agent with an OpenAI client is recorded on a hosted model as on one that is trained.
func TestHTTPClient(t *testing.T) {
	m := register(t, open(t, newServer(t, said("Hi.")), openai.Options{}), "m")
	trajectory, err := art.Record(t.Context(), func(ctx context.Context) error {
		body := strings.NewReader(`{"model":"any","messages":[{"role":"user","content":"Hello?"}]}`)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://art/v1/chat/completions", body)
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		response, err := m.HTTPClient().Do(req)
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
	if err != nil || len(trajectory.Messages) != 2 || trajectory.Messages[1].Content != "Hi." {
		t.Errorf("trajectory %+v, error %v", trajectory, err)
	}
}

// TestLog_Trajectories: what is logged comes back.
func TestLog_Trajectories(t *testing.T) {
	b := open(t, newServer(t, said("Hi.")), openai.Options{})
	m := register(t, b, "m")
	trajectory := art.NewTrajectory(art.User("Hello?"))
	if _, err := m.Chat(t.Context(), trajectory, nil); err != nil {
		t.Fatal(err)
	}
	trajectory.Reward = 2
	group := &art.TrajectoryGroup{Trajectories: []*art.Trajectory{trajectory, nil}}
	if err := m.Log(t.Context(), "val", []*art.TrajectoryGroup{group, nil}, nil); err != nil {
		t.Fatal(err)
	}
	groups, err := b.Trajectories(t.Context(), m, "val", 0)
	if err != nil || len(groups) != 1 || len(groups[0].Trajectories) != 1 {
		t.Fatalf("groups %+v, error %v", groups, err)
	}
	if got := groups[0].Trajectories[0]; got.Reward != 2 || got.Messages[1].Content != "Hi." {
		t.Errorf("trajectory %+v", got)
	}
	dir, err := b.Dir(m)
	if err != nil {
		t.Fatal(err)
	}
	run, err := rundir.Open(dir)
	if err != nil || run.About().Base != "m" {
		t.Errorf("run %+v, error %v", run, err)
	}
}
