package backend_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/openai"
	"github.com/goart-dev/art/ruler"
)

// services are the APIs that documentation names, in place of the network. Each knows some models, and answers requests
// for others as OpenAI does.
type services struct {
	models map[string][]string // by the address of a service

	mu    sync.Mutex
	asked []string // models that answered
}

// attempt matches what a judge is shown of a trajectory.
var attempt = regexp.MustCompile(`(?s)<attempt-\w+ id="(\w+)"`)

// RoundTrip implements [http.RoundTripper].
func (s *services) RoundTrip(r *http.Request) (*http.Response, error) {
	var body struct {
		Model    string
		Messages []struct{ Content string }
	}
	address, route, _ := strings.Cut(r.URL.String(), "/v1/")
	if r.Body != nil {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return nil, err
		}
	}
	keyless := strings.HasPrefix(address, "https:") && r.Header.Get("Authorization") != "Bearer sk-of-the-test"
	switch {
	case route != "chat/completions" || keyless:
		return answer(r, http.StatusUnauthorized, map[string]any{"error": map[string]any{"message": "who are you?"}}), nil
	case !slices.Contains(s.models[address], body.Model):
		message := fmt.Sprintf("the model %q does not exist", body.Model)
		return answer(r, http.StatusNotFound, map[string]any{
			"error": map[string]any{"message": message, "code": "model_not_found"},
		}), nil
	}
	s.mu.Lock()
	s.asked = append(s.asked, body.Model)
	s.mu.Unlock()
	text := "Yes."
	var ratings []ruler.Rating
	for i, found := range attempt.FindAllStringSubmatch(body.Messages[len(body.Messages)-1].Content, -1) {
		ratings = append(ratings, ruler.Rating{ID: found[1], Explanation: "its place", Score: 1 / float64(i+1)})
		text = ruler.Answer(ratings...)
	}
	return answer(r, http.StatusOK, map[string]any{
		"id": "1", "model": body.Model, "usage": map[string]int{"prompt_tokens": 5, "completion_tokens": 2},
		"choices": []any{map[string]any{"finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": text}}},
	}), nil
}

// answer makes a response of JSON.
func answer(r *http.Request, status int, v any) *http.Response {
	data, err := json.Marshal(v)
	check(err)
	return &http.Response{
		StatusCode: status, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(data)),
	}
}

// documented runs code as it is documented: in an empty folder, with a key, and services in place of the network. The
// code has to reach a model of theirs, and may leave no files.
func documented(t *testing.T, want string, code func(ctx context.Context)) {
	t.Helper()
	s := &services{models: map[string][]string{
		"https://api.openai.com": {"gpt-5.4", "gpt-5.4-mini", "gpt-5-mini"}, "http://localhost:11434": {"qwen3:8b"},
	}}
	network := http.DefaultTransport
	http.DefaultTransport = s
	defer func() { http.DefaultTransport = network }()
	t.Chdir(t.TempDir())
	t.Setenv("OPENAI_BASE_URL", "")
	t.Setenv("OPENAI_API_KEY", "sk-of-the-test")
	code(t.Context())
	if len(s.asked) == 0 || slices.ContainsFunc(s.asked, func(model string) bool { return model != want }) {
		t.Errorf("models %q answered, want %q", s.asked, want)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("the code left %v, error %v", left, err)
	}
}

// scenarios and play stand for those of a program.
var scenarios = []string{"Is grass green?", "Is the sky green?"}

func play(ctx context.Context, question string) (*art.Trajectory, error) {
	return art.NewTrajectory(art.User(question), art.Assistant(fmt.Sprint(art.Rand(ctx).IntN(1e9)))), nil
}

// wantScored checks that a judge has set the rewards of groups.
func wantScored(t *testing.T, groups []*art.TrajectoryGroup, err error) {
	t.Helper()
	if err != nil || len(groups) != len(scenarios) {
		t.Fatalf("%d groups, error %v", len(groups), err)
	}
	for _, g := range groups {
		if best := slices.Max(rewards(g)); best != 1 {
			t.Errorf("rewards %v, want a best one of 1", rewards(g))
		}
	}
}

func rewards(g *art.TrajectoryGroup) (list []float64) {
	for _, trajectory := range g.Trajectories {
		list = append(list, trajectory.Reward)
	}
	return list
}

func TestDocumented_JudgingPage(t *testing.T) {
	documented(t, "gpt-5.4-mini", func(ctx context.Context) {
		backend, err := openai.Open(ctx, nil) // or any other backend; the key is OPENAI_API_KEY
		check(err)
		judge := art.NewModel("gpt-5.4-mini", nil) // what the API calls the model
		err = judge.Register(ctx, backend)
		check(err)
		groups, err := art.GatherGroups(ctx, scenarios, play, &art.GatherOptions{
			GroupSize: 8,
			After:     ruler.New(judge, nil).After,
		})
		wantScored(t, groups, err)
	})
}

func TestDocumented_Ruler(t *testing.T) {
	documented(t, "gpt-5.4", func(ctx context.Context) {
		backend, err := openai.Open(ctx, nil) // or any other backend; the key is OPENAI_API_KEY
		check(err)
		judge := art.NewModel("gpt-5.4", nil) // what the API calls the model
		err = judge.Register(ctx, backend)
		check(err)
		groups, err := art.GatherGroups(ctx, scenarios, play, &art.GatherOptions{After: ruler.New(judge, nil).After})
		wantScored(t, groups, err)
	})
}

func TestDocumented_HostedPage(t *testing.T) {
	documented(t, "gpt-5-mini", func(ctx context.Context) {
		backend, err := openai.Open(ctx, &openai.Options{MaxSpend: 5}) // US dollars; the key is OPENAI_API_KEY
		check(err)
		judge := art.NewModel("judge", &art.ModelOptions{Base: "gpt-5-mini", Frozen: true})
		err = judge.Register(ctx, backend)
		check(err)
		reply, err := judge.Chat(ctx, art.NewTrajectory(art.User("Is grass green?")), nil)
		wantReply(t, reply, err)
	})
}

func TestDocumented_Hosted(t *testing.T) {
	documented(t, "gpt-5-mini", func(ctx context.Context) {
		judge, err := openai.Open(ctx, &openai.Options{MaxSpend: 5})
		check(err)
		model := art.NewModel("judge", &art.ModelOptions{Base: "gpt-5-mini", Frozen: true})
		err = model.Register(ctx, judge)
		check(err)
		reply, err := model.Chat(ctx, art.NewTrajectory(art.User("Hello?")), nil)
		wantReply(t, reply, err)
	})
}

func TestDocumented_OpenAI(t *testing.T) {
	documented(t, "qwen3:8b", func(ctx context.Context) {
		backend, err := openai.Open(ctx, &openai.Options{BaseURL: "http://localhost:11434/v1"}) // Ollama
		check(err)
		model := art.NewModel("baseline", &art.ModelOptions{Base: "qwen3:8b", Frozen: true})
		err = model.Register(ctx, backend)
		check(err)
		reply, err := model.Chat(ctx, art.NewTrajectory(art.User("Hello?")), nil)
		wantReply(t, reply, err)
	})
}

// wantReply checks that a model answered.
func wantReply(t *testing.T, reply *art.Message, err error) {
	t.Helper()
	if err != nil || reply.Content != "Yes." {
		t.Errorf("reply %+v, error %v", reply, err)
	}
}
