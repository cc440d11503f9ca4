package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// sampling is a backend whose n-th completion is the text "n", sampled as the tokens n and 0 after a prompt of one
// token for each message.
type sampling struct {
	art.Backend // the methods that are not called stay nil
	calls       atomic.Int32
	before      func(ctx context.Context) error // may fail the call; nil does nothing
}

func (b *sampling) Register(context.Context, *art.Model) (int, error) { return 5, nil }

func (b *sampling) Complete(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	if b.before != nil {
		if err := b.before(ctx); err != nil {
			return nil, err
		}
	}
	n := b.calls.Add(1)
	reply := art.Assistant(fmt.Sprint(n))
	reply.Sample = &art.Sample{
		PromptIDs: make([]int32, len(req.Messages)), IDs: []int32{n, 0}, Logprobs: []float32{-float32(n) / 7, -0.1},
		Settings: req.Settings, Step: 5, Finish: art.FinishStop,
	}
	return &art.ChatResponse{ID: "chatcmpl-1", Model: m.Name() + "@5", Message: reply, Finish: art.FinishStop}, nil
}

// recording is a server that records rollouts of the models "player" and "other", for the keys "k1" and "k2".
type recording struct {
	t        *testing.T
	handler  http.Handler
	rollouts *Rollouts
	models   []*art.Model
}

func newRecording(t *testing.T, b art.Backend, opts *RolloutOptions) *recording {
	t.Helper()
	rollouts, err := NewRollouts(opts)
	if err != nil {
		t.Fatal(err)
	}
	models := []*art.Model{register(t, b, "player"), register(t, b, "other")}
	h, err := Handler(func() []*art.Model { return models }, &Config{Rollouts: rollouts},
		&art.HandlerOptions{Keys: []string{"k1", "k2"}})
	if err != nil {
		t.Fatal(err)
	}
	return &recording{t, h, rollouts, models}
}

// request returns a request with a key.
func request(ctx context.Context, key, method, path, body string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	return r
}

// do sends a request and returns status and body.
func (s *recording) do(key, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, request(s.t.Context(), key, method, path, body))
	return w.Code, w.Body.String()
}

// must sends a request of the key k1 and decodes the answer, which has the given status.
func (s *recording) must(status int, method, path, body string, into any) {
	s.t.Helper()
	got, text := s.do("k1", method, path, body)
	if got != status {
		s.t.Fatalf("%s %s: status %d, want %d: %s", method, path, got, status, text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		s.t.Fatalf("%v: %s", err, text)
	}
}

// open opens a rollout and returns its base.
func (s *recording) open(fields string) (id, base string) {
	s.t.Helper()
	var info struct{ ID, Base string }
	s.must(http.StatusCreated, "POST", "/v1/rollouts", `{"model": "player"`+fields+`}`, &info)
	return info.ID, info.Base
}

// turn asks for a reply to texts, of user and assistant by turns.
func (s *recording) turn(base string, texts ...string) string {
	s.t.Helper()
	var reply struct {
		Choices []struct{ Message art.Message }
	}
	s.must(http.StatusOK, "POST", base+"/v1/chat/completions", conversation(texts...), &reply)
	return reply.Choices[0].Message.Content
}

// conversation returns the body of a request with messages of user and assistant by turns.
func conversation(texts ...string) string {
	var messages []string
	for i, text := range texts {
		role := []string{"user", "assistant"}[i%2]
		messages = append(messages, fmt.Sprintf(`{"role": %q, "content": %q}`, role, text))
	}
	return `{"model": "gpt-4o", "messages": [` + strings.Join(messages, ",") + `]}`
}

// close closes a rollout.
func (s *recording) close(id, fields string) {
	s.t.Helper()
	s.must(http.StatusOK, "POST", "/v1/rollouts/"+id+"/close", `{`+fields+`}`, &struct{}{})
}

// next returns the next group, which must be there.
func (s *recording) next() *art.TrajectoryGroup {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Minute)
	defer cancel()
	g, err := s.rollouts.Next(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	return g
}

// refused checks the error response to the key k1: its status, its code, and what its message says.
func (s *recording) refused(method, path, body string, status int, code string, says ...string) {
	s.t.Helper()
	got, text := s.do("k1", method, path, body)
	e := readWireError(s.t, strings.NewReader(text))
	if got != status || e.Code != code {
		s.t.Errorf("%s %s: status %d, want %d: %s", method, path, got, status, text)
	}
	for _, want := range says {
		if !strings.Contains(e.Message, want) {
			s.t.Errorf("%s %s: %q does not say %q", method, path, e.Message, want)
		}
	}
}

// texts returns the contents of messages, with a star where there is a sample.
func texts(h *art.History) (out []string) {
	for _, m := range h.Messages {
		if m.Sample != nil {
			m.Content += "*"
		}
		out = append(out, m.Content)
	}
	return out
}

func wantEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// What a client does is read, closed and taken with the samples, bit for bit.
func TestRollouts_Lifecycle(t *testing.T) {
	s := newRecording(t, &sampling{}, nil)
	id, base := s.open(`, "scenario": "maze", "metadata": {"level": 3, "p": 0.5, "hard": true}, ` +
		`"group": "g", "group_size": 1`)
	wantEqual(t, "base", base, "/r/"+id)
	if len(id) < 26 { // base32 of 128 bits
		t.Errorf("id is %q", id)
	}
	s.turn(base, "go")
	s.turn(base, "go", "1", "on")

	var read art.Trajectory
	s.must(http.StatusOK, "GET", "/v1/rollouts/"+id, "", &read)
	wantEqual(t, "texts", texts(&read.History), []string{"go", "1*", "on", "2*"})
	sample := read.Messages[3].Sample
	wantEqual(t, "ids", sample.IDs, []int32{2, 0})
	wantEqual(t, "logprobs", sample.Logprobs, []float32{-float32(2) / 7, -0.1})
	wantEqual(t, "prompt", len(sample.PromptIDs), 3)
	labels := map[string]any{"scenario": "maze", "level": 3, "p": 0.5, "hard": true, "group": "g", "rollout": id}
	wantEqual(t, "metadata", read.Metadata, labels)

	s.close(id, `"reward": 0.25, "metrics": {"won": 1}, "logs": ["a"], "metadata": {"end": null}`)
	g := s.next()
	labels["end"] = nil
	tr := g.Trajectories[0]
	wantEqual(t, "samples", tr.Samples(), read.Samples())
	wantEqual(t, "metadata", tr.Metadata, labels)
	wantEqual(t, "metrics", tr.Metrics, map[string]float64{"won": 1})
	wantEqual(t, "logs", tr.Logs, []string{"a"})
	wantEqual(t, "group", g.Metadata, map[string]any{"group": "g"})
	if tr.Reward != 0.25 || tr.Duration <= 0 || len(g.Trajectories) != 1 || len(g.Failures) != 0 {
		t.Errorf("reward %v, duration %v, %d trajectories", tr.Reward, tr.Duration, len(g.Trajectories))
	}
	s.refused("GET", "/v1/rollouts/"+id, "", 404, "rollout_not_found", "taken")
	wantEqual(t, "held", s.rollouts.held, 0)
	wantEqual(t, "bytes", s.rollouts.bytes, int64(0))
}

// What does not continue the conversation becomes an additional history, which says why.
func TestRollouts_Forks(t *testing.T) {
	s := newRecording(t, &sampling{}, nil)
	id, base := s.open("")
	s.turn(base, "go")
	s.turn(base, "go") // again
	s.turn(base, "sub-agent")
	s.turn(base, "go", "2", "on")
	var tr art.Trajectory
	s.must(http.StatusOK, "GET", "/v1/rollouts/"+id, "", &tr)
	wantEqual(t, "main", texts(&tr.History), []string{"go", "1*"})
	wantEqual(t, "first", texts(&tr.AdditionalHistories[0]), []string{"go", "2*", "on", "4*"})
	wantEqual(t, "second", texts(&tr.AdditionalHistories[1]), []string{"sub-agent", "3*"})
	wantEqual(t, "logs", tr.Logs, []string{
		"additional_histories[0]: the request ends before message 1 of the main history: it was sent again, or is another branch",
		"additional_histories[1]: message 0 (user) differs from that of the main history in its content",
	})
}

// A client that cannot change its base URL sends a header. Both at once must agree.
func TestRollouts_Header(t *testing.T) {
	s := newRecording(t, &sampling{}, nil)
	id, base := s.open("")
	send := func(header, path, body string) *httptest.ResponseRecorder {
		r := request(t.Context(), "k1", "POST", path, body)
		r.Header.Set("X-Rollout-ID", header)
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		return w
	}
	if w := send(id, "/v1/chat/completions", conversation("go")); w.Code != http.StatusOK {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	if w := send("other", base+"/v1/chat/completions", conversation("go")); w.Code != http.StatusBadRequest {
		t.Errorf("two ids: status %d: %s", w.Code, w.Body)
	}
	if w := send(id, "/v1/rollouts/"+id+"/close", `{"reward": 1}`); w.Code != http.StatusOK {
		t.Errorf("closing: status %d: %s", w.Code, w.Body)
	}
	var tr art.Trajectory
	s.must(http.StatusOK, "GET", "/v1/rollouts/"+id, "", &tr)
	wantEqual(t, "texts", texts(&tr.History), []string{"go", "1*"})
}

// To another key a rollout does not exist, and its groups have names of their own.
func TestRollouts_BelongToTheirKey(t *testing.T) {
	s := newRecording(t, &sampling{}, nil)
	id, base := s.open(`, "group": "g", "group_size": 2`)
	s.turn(base, "go")
	for _, c := range [][3]string{
		{"GET", "/v1/rollouts/" + id, ""},
		{"POST", "/v1/rollouts/" + id + "/close", `{"reward": 1}`},
		{"POST", base + "/v1/chat/completions", conversation("go")},
		{"GET", base + "/v1/models", ""},
	} {
		if status, text := s.do("k2", c[0], c[1], c[2]); status != 404 || !strings.Contains(text, "rollout_not_found") {
			t.Errorf("%s %s: status %d for another key: %s", c[0], c[1], status, text)
		}
		if status, _ := s.do("k3", c[0], c[1], c[2]); status != http.StatusUnauthorized {
			t.Errorf("%s %s: status %d for an unknown key", c[0], c[1], status)
		}
	}
	if status, text := s.do("k2", "POST", "/v1/rollouts/groups/g/close", "{}"); status != 404 {
		t.Errorf("group: status %d for another key: %s", status, text)
	}
	if status, text := s.do("k2", "POST", "/v1/rollouts", `{"model": "other", "group": "g"}`); status != 201 {
		t.Errorf("the same name with another key: status %d: %s", status, text)
	}
	s.turn(base, "go", "1", "on")
}

// The key counts, not the header that has it.
func TestRollouts_KeyInEitherHeader(t *testing.T) {
	s := newRecording(t, &sampling{}, nil)
	id, _ := s.open("")
	r := request(t.Context(), "unused", "GET", "/v1/rollouts/"+id, "")
	r.Header.Set("X-Api-Key", "k1")
	w := httptest.NewRecorder()
	if s.handler.ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// A pinned rollout is answered by the step that was the newest when it was opened, others by the newest.
func TestRollouts_Pin(t *testing.T) {
	s := newRecording(t, &arttest.Backend{}, nil)
	var pinned, free rolloutInfo
	s.must(201, "POST", "/v1/rollouts", `{"model": "player", "pin": true}`, &pinned)
	s.must(201, "POST", "/v1/rollouts", `{"model": "player"}`, &free)
	if pinned.Step == nil || *pinned.Step != 0 || free.Step != nil {
		t.Errorf("steps %v and %v", pinned.Step, free.Step)
	}
	groups := []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{art.NewTrajectory(art.User("u"))}}}
	if _, err := s.models[0].Train(t.Context(), groups, nil); err != nil {
		t.Fatal(err)
	}
	for base, want := range map[string]int{pinned.Base: 0, free.Base: 1} {
		status, text := s.do("k1", "POST", base+"/v1/chat/completions", conversation("go"))
		if status != 200 || !strings.Contains(text, fmt.Sprintf(`"player@%d"`, want)) {
			t.Errorf("%s: status %d, want step %d: %s", base, status, want, text)
		}
	}
	for model, want := range map[string]int{"player": 1, "player@0": 0, "player@1": 1} {
		var named rolloutInfo
		s.must(201, "POST", "/v1/rollouts", fmt.Sprintf(`{"model": %q}`, model), &named)
		if pinned := model != "player"; pinned != (named.Step != nil) || pinned && *named.Step != want {
			t.Errorf("%s: pinned to %v", model, named.Step)
		}
		for path, body := range map[string]string{
			"/v1/chat/completions": `"messages": [{"role": "user", "content": "go"}]`, "/v1/completions": `"prompt": "go"`,
			"/v1/responses": `"input": "go"`, "/v1/messages": `"max_tokens": 9, "messages": [{"role": "user", "content": "go"}]`,
			"/inference/v1/generate": `"token_ids": [1]`,
		} {
			status, text := s.do("k1", "POST", path, fmt.Sprintf(`{"model": %q, %s}`, model, body))
			if status != 200 || !strings.Contains(text, fmt.Sprintf(`"player@%d"`, want)) {
				t.Errorf("%s of %s: status %d: %s", path, model, status, text)
			}
		}
	}
	s.refused("POST", "/v1/chat/completions", `{"model": "player@7", "messages": [{"role": "user", "content": "x"}]}`, 404,
		"model_not_found", "checkpoint")
	plain := newRecording(t, &sampling{}, nil)
	plain.refused("POST", "/v1/rollouts", `{"model": "player", "pin": true}`, 400, "unsupported", "driver.Pinner")
}

// Prompts of texts and of token ids are recorded too, streamed or not: a prompt that goes on from all ids before
// continues the history, so that no token is lost and none is there twice.
func TestRollouts_TokenPrompts(t *testing.T) {
	s := newRecording(t, &arttest.Backend{Reply: arttest.Script("yes", "no")}, nil)
	id, base := s.open("")
	type choices struct {
		Choices []struct {
			TokenIDs []rune `json:"token_ids"`
		}
	}
	var first, second choices
	s.must(200, "POST", base+"/v1/completions", `{"model": "any", "prompt": "go", "return_token_ids": true}`, &first)
	if len(first.Choices) != 1 || string(first.Choices[0].TokenIDs) != "yes" {
		t.Fatalf("%+v", first)
	}
	ids, _ := json.Marshal([]rune("goyes on"))
	body := fmt.Sprintf(`{"token_ids": %s, "sampling_params": {"max_tokens": 5, "skip_special_tokens": false}}`, ids)
	s.must(200, "POST", base+"/inference/v1/generate", body, &second)
	if len(second.Choices) != 1 || string(second.Choices[0].TokenIDs) != "yes" {
		t.Fatalf("%+v", second)
	}
	status, text := s.do("k1", "POST", base+"/v1/completions", `{"model": "any", "prompt": "else", "stream": true}`)
	if status != 200 || !strings.Contains(text, "[DONE]") {
		t.Fatalf("status %d: %s", status, text)
	}
	var tr art.Trajectory
	s.must(200, "GET", "/v1/rollouts/"+id, "", &tr)
	var got []string
	for _, h := range tr.Histories() {
		for _, m := range h.Messages {
			got = append(got, m.Content)
		}
	}
	want := []string{"go", "yes", " on", "yes", "else", "yes"}
	if !slices.Equal(got, want) || len(tr.Samples()) != 3 || len(tr.AdditionalHistories) != 1 || len(tr.Logs) != 1 {
		t.Errorf("recorded %q, logs %q", got, tr.Logs)
	}
	if p := string(tr.Samples()[1].PromptIDs); p != "goyes on" {
		t.Errorf("prompt %q", p)
	}
}

// A rollout is answered by its model, whatever the client names, and nothing that would not be recorded is served.
func TestRollouts_ServeTheirModelOnly(t *testing.T) {
	s := newRecording(t, &sampling{}, nil)
	_, base := s.open("")
	for path, status := range map[string]int{
		"/v1/models": 200, "/v1/models/any": 200, "/v1/completions": 405, "/inference/v1/generate": 405, "/v1/rollouts": 404,
		"": 404, "/": 404, "/r/x/v1/models": 404, "/metrics": 404,
	} {
		if got, text := s.do("k1", "GET", base+path, ""); got != status {
			t.Errorf("%s: status %d, want %d: %s", path, got, status, text)
		}
	}
	s.refused("POST", base+"/v1/embeddings", "{}", 404, "not_recorded", "/v1/chat/completions", "/v1/completions")
	got, text := s.do("k1", "POST", base+"/v1/chat/completions", conversation("go"))
	if got != 200 || !strings.Contains(text, `"player@5"`) {
		t.Errorf("status %d: %s", got, text)
	}
	r := request(t.Context(), "k1", "POST", base+"/v1/chat/completions", conversation("go"))
	r.Header.Set("Content-Type", "text/plain") // what a web page can send without asking
	w := httptest.NewRecorder()
	if s.handler.ServeHTTP(w, r); w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("text/plain: status %d", w.Code)
	}
}

// A server without rollouts says so; it does not serve what the client believes to be recorded.
func TestRoutes_WithoutRollouts(t *testing.T) {
	h := newHandler(t, &sampling{})
	for _, path := range []string{"/r/x/v1/chat/completions", "/v1/rollouts"} {
		r := httptest.NewRequest("POST", path, strings.NewReader(hello("")))
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
	}
	r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(hello("")))
	r.Header.Set("X-Rollout-ID", "x")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "Config.Rollouts") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

func TestRollouts_BadBodies(t *testing.T) {
	s := newRecording(t, &sampling{}, &RolloutOptions{MaxRollouts: 8})
	id, base := s.open(`, "group": "g", "group_size": 2`)
	s.turn(base, "go")
	for body, says := range map[string]string{
		`{"model": "nobody"}`:                  "nobody",
		`{}`:                                   "model is missing",
		`{"model": "player", "group_size": 2}`: "group is missing",
		`{"model": "player", "group": "a/b"}`:  "slash",
		`{"model": "player", "group": "h", "group_size": -1}`: "group_size is -1",
		`{"model": "player", "group": "h", "group_size": 9}`:  "RolloutOptions.MaxRollouts",
		`{"model": "player", "group": "g", "group_size": 3}`:  "begun with 2",
		`{"model": "other", "group": "g"}`:                    "is a group of the model",
		`{"model": "player", "metadata": {"group": "x"}}`:     "which the server sets",
		`{"model": "player", "metadata": {"a": []}}`:          "metadata has an object or a list",
		`{"model": "player", "modle": 1}`:                     "modle",
		`{"model": "player"} {}`:                              "behind the object",
		`null`:                                                "not an object",
	} {
		if status, text := s.do("k1", "POST", "/v1/rollouts", body); status/100 != 4 || !strings.Contains(text, says) {
			t.Errorf("%s: status %d: %s", body, status, text)
		}
	}
	for body, says := range map[string]string{
		`{}`:                              "reward is missing",
		`{"reward": 1, "failure": "x"}`:   "send one of them",
		`{"reward": "high"}`:              "reward",
		`{"rewrad": 1}`:                   "rewrad",
		`{"reward": 1, "metrics": {"a":`:  "unexpected EOF",
		`{"reward": 1e999}`:               "reward",
		`{"reward": 1, "logs": "line"}`:   "logs",
		`{"reward": 1, "metadata": [1]}`:  "metadata",
		`{"reward": 1, "metrics": ["a"]}`: "metrics",
	} {
		status, text := s.do("k1", "POST", "/v1/rollouts/"+id+"/close", body)
		if status != 400 || !strings.Contains(text, says) {
			t.Errorf("%s: status %d: %s", body, status, text)
		}
	}
	wantEqual(t, "held", s.rollouts.held, 2)
	s.close(id, `"reward": 1`)
}

// A reward for nothing is most often a client with another base URL.
func TestRollouts_NothingRecorded(t *testing.T) {
	s := newRecording(t, &sampling{}, nil)
	id, base := s.open("")
	s.refused("POST", "/v1/rollouts/"+id+"/close", `{"reward": 1}`, 409, "nothing_recorded", base+"/v1", "failure")
	s.close(id, `"failure": "no time"`)
}

// A closed rollout stays as it is.
func TestRollouts_ClosedOnce(t *testing.T) {
	s := newRecording(t, &sampling{}, nil)
	id, base := s.open("")
	s.turn(base, "go")
	s.close(id, `"reward": 1`)
	s.refused("POST", "/v1/rollouts/"+id+"/close", `{"reward": 2}`, 410, "rollout_closed")
	s.refused("POST", base+"/v1/chat/completions", conversation("go"), 410, "rollout_closed")
	var tr art.Trajectory
	s.must(200, "GET", "/v1/rollouts/"+id, "", &tr)
	if tr.Reward != 1 || len(tr.Samples()) != 1 {
		t.Errorf("reward %v, %d samples", tr.Reward, len(tr.Samples()))
	}
}

// A group is complete at its size, failures included, or when it is closed, which fails what is open.
func TestRollouts_Groups(t *testing.T) {
	s := newRecording(t, &sampling{}, nil)
	var ids []string
	for range 3 {
		id, base := s.open(`, "group": "sized", "group_size": 3`)
		s.turn(base, "go")
		ids = append(ids, id)
	}
	s.refused("POST", "/v1/rollouts", `{"model": "player", "group": "sized"}`, 400, "", "all of its 3 rollouts")
	s.close(ids[2], `"reward": 2`)
	s.close(ids[1], `"failure": "browser crashed"`)
	if len(s.rollouts.complete) != 0 {
		t.Error("complete with an open rollout")
	}
	s.close(ids[0], `"reward": 1`)

	for i := range 3 {
		id, base := s.open(`, "group": "open"`)
		s.turn(base, "go")
		if i < 2 {
			s.close(id, fmt.Sprint(`"reward": `, i))
		}
	}
	var info groupInfo
	s.must(200, "POST", "/v1/rollouts/groups/open/close", "{}", &info)
	wantEqual(t, "info", info, groupInfo{"rollout_group", "open", 2, 1})

	sized, open := s.next(), s.next()
	wantEqual(t, "rewards", []float64{sized.Trajectories[0].Reward, sized.Trajectories[1].Reward}, []float64{1, 2})
	wantEqual(t, "failures", sized.Failures, []art.Failure{
		{Attempt: 1, Tries: 1, Type: "failed", Message: "browser crashed"},
	})
	if len(open.Trajectories) != 2 || open.Failures[0].Type != "group_closed" || open.Failures[0].Attempt != 2 {
		t.Errorf("%d trajectories, failures %+v", len(open.Trajectories), open.Failures)
	}
	wantEqual(t, "held", s.rollouts.held, 0)
}

// With several models each training loop takes its own groups.
func TestRollouts_GroupsOfAModel(t *testing.T) {
	s := newRecording(t, &sampling{}, nil)
	for _, model := range []string{"player", "other"} {
		var info struct{ ID, Base string }
		s.must(201, "POST", "/v1/rollouts", `{"model": "`+model+`", "group": "of `+model+`", "group_size": 1}`, &info)
		s.turn(info.Base, "go")
		s.close(info.ID, `"reward": 1`)
	}
	for i, want := range []string{"of player", "of other"} {
		g, err := s.rollouts.Groups(s.models[i]).Next(t.Context())
		if err != nil || g.Metadata["group"] != want {
			t.Errorf("group %v, error %v", g, err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.rollouts.Groups(s.models[0]).Next(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

// An idle rollout fails, one that is used does not, and neither do those that wait for a reply.
func TestRollouts_IdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := time.Duration(0)
		b := &sampling{before: func(context.Context) error { time.Sleep(slow); return nil }}
		s := newRecording(t, b, &RolloutOptions{IdleTimeout: time.Minute})
		idle, _ := s.open(`, "group": "g", "group_size": 2`)
		used, base := s.open(`, "group": "g", "group_size": 2`)
		s.turn(base, "go")
		time.Sleep(40 * time.Second)
		s.turn(base, "go", "1", "on")
		slow = time.Hour - 2*time.Minute
		time.Sleep(40 * time.Second)
		s.refused("POST", "/v1/rollouts/"+idle+"/close", `{"reward": 1}`, 410, "rollout_closed",
			"RolloutOptions.IdleTimeout")
		s.turn(base, "go", "1", "on", "2", "long")
		s.close(used, `"reward": 1`)
		g := s.next()
		if len(g.Trajectories) != 1 || len(g.Failures) != 1 || g.Failures[0].Type != "idle_timeout" {
			t.Errorf("group %+v", g)
		}
		lone, base := s.open("")
		slow = 0
		s.turn(base, "go")
		s.close(lone, `"reward": 1`)
		time.Sleep(59 * time.Second)
		s.must(200, "GET", "/v1/rollouts/"+lone, "", &art.Trajectory{})
		time.Sleep(2 * time.Second)
		s.refused("GET", "/v1/rollouts/"+lone, "", 404, "rollout_not_found")
		wantEqual(t, "held", s.rollouts.held, 0)
	})
}

func TestRollouts_GroupTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRecording(t, &sampling{}, &RolloutOptions{GroupTimeout: time.Minute})
		done, base := s.open(`, "group": "g", "group_size": 4`)
		s.turn(base, "go")
		s.close(done, `"reward": 1`)
		_, base = s.open(`, "group": "g"`)
		s.turn(base, "go")
		start := time.Now()
		g := s.next()
		if len(g.Trajectories) != 1 || len(g.Failures) != 1 || g.Failures[0].Type != "group_timeout" ||
			!strings.Contains(g.Failures[0].Message, "RolloutOptions.GroupTimeout") {
			t.Errorf("group %+v", g)
		}
		wantEqual(t, "time", time.Since(start), time.Minute)
		wantEqual(t, "held", s.rollouts.held, 0)
	})
}

// Closing a rollout cancels what is under way; the reply is not recorded, and no client has it.
func TestRollouts_CloseCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &sampling{}
		s := newRecording(t, b, nil)
		id, base := s.open(`, "group": "g", "group_size": 1`)
		s.turn(base, "go")
		b.before = func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("stopped: %w", context.Cause(ctx)) }
		go s.refused("POST", base+"/v1/chat/completions", conversation("go", "1", "on"), 410, "rollout_closed", "meanwhile")
		synctest.Wait()
		s.close(id, `"reward": 1`)
		synctest.Wait()
		wantEqual(t, "texts", texts(&s.next().Trajectories[0].History), []string{"go", "1*"})
	})
}

// A backend that ignores its context does not bring a reply to the client that is not recorded.
func TestRollouts_LateReplyIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &sampling{before: func(context.Context) error { time.Sleep(time.Minute); return nil }}
		s := newRecording(t, b, nil)
		id, base := s.open("")
		go func() {
			time.Sleep(time.Second)
			s.close(id, `"failure": "enough"`)
		}()
		s.refused("POST", base+"/v1/chat/completions", conversation("go"), 410, "rollout_closed")
	})
}

// Memory is bounded, and each error names the option. A group that was begun can always be completed.
func TestRollouts_Limits(t *testing.T) {
	s := newRecording(t, &sampling{}, &RolloutOptions{MaxRollouts: 3, MaxTurns: 2, MaxBytes: 1000})
	first, base := s.open(`, "group": "g", "group_size": 3`)
	open := `{"model": "player"}`
	s.refused("POST", "/v1/rollouts", open, 429, "too_many_rollouts", "1 are open", "RolloutOptions.MaxRollouts")
	s.turn(base, "go")
	s.turn(base, "go", "1", "on")
	s.refused("POST", base+"/v1/chat/completions", conversation("go"), 400, "too_many_turns",
		"RolloutOptions.MaxTurns")
	s.close(first, `"reward": 1`)
	for range 2 {
		id, _ := s.open(`, "group": "g"`)
		s.close(id, `"failure": "x"`)
	}
	s.refused("POST", "/v1/rollouts", open, 429, "too_many_rollouts", "3 are in complete groups", "Next")
	s.next()
	id, base := s.open("")
	s.turn(base, strings.Repeat("long ", 200))
	s.refused("POST", base+"/v1/chat/completions", conversation("go"), 429, "too_many_bytes",
		"RolloutOptions.MaxBytes")
	s.refused("POST", "/v1/rollouts", open, 429, "too_many_bytes")
	s.close(id, `"reward": 1`)
}

// Requests under way count as turns.
func TestRollouts_ConcurrentTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &sampling{before: func(context.Context) error { time.Sleep(time.Second); return nil }}
		s := newRecording(t, b, &RolloutOptions{MaxTurns: 4})
		id, base := s.open("")
		var answered atomic.Int32
		for i := range 10 {
			go func() {
				code, _ := s.do("k1", "POST", base+"/v1/chat/completions", conversation(fmt.Sprint(i%2)))
				if code == http.StatusOK {
					answered.Add(1)
				}
			}()
		}
		time.Sleep(2 * time.Second)
		var tr art.Trajectory
		s.must(200, "GET", "/v1/rollouts/"+id, "", &tr)
		if answered.Load() != 4 || len(tr.Samples()) != 4 || len(tr.Histories()) != 4 {
			t.Errorf("%d answered, %d samples, %d histories", answered.Load(), len(tr.Samples()), len(tr.Histories()))
		}
		s.close(id, `"reward": 1`)
		time.Sleep(defaultIdleTimeout)
	})
}

// Close completes what there is, and then the source ends.
func TestRollouts_Close(t *testing.T) {
	s := newRecording(t, &sampling{}, nil)
	id, base := s.open(`, "group": "g", "group_size": 4`)
	s.turn(base, "go")
	s.close(id, `"reward": 1`)
	s.open(`, "group": "g"`)
	_, lone := s.open("")
	s.rollouts.Close()
	s.rollouts.Close()
	g := s.next()
	if len(g.Trajectories) != 1 || len(g.Failures) != 1 || g.Failures[0].Type != "server_closed" {
		t.Errorf("group %+v", g)
	}
	if _, err := s.rollouts.Next(t.Context()); err != io.EOF { //nolint:errorlint // documented
		t.Errorf("error is %v", err)
	}
	s.refused("POST", "/v1/rollouts", `{"model": "player"}`, 503, "recording_closed")
	s.refused("POST", lone+"/v1/chat/completions", conversation("go"), 404, "rollout_not_found")
	wantEqual(t, "held", s.rollouts.held, 0)
}

// Waiting callers of Next each get a group, or the end.
func TestRollouts_NextWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRecording(t, &sampling{}, nil)
		var groups, ends atomic.Int32
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				switch _, err := s.rollouts.Next(t.Context()); {
				case err == nil:
					groups.Add(1)
				case errors.Is(err, io.EOF):
					ends.Add(1)
				}
			})
		}
		for range 2 {
			id, base := s.open(`, "group": "g", "group_size": 1`)
			s.turn(base, "go")
			s.close(id, `"reward": 1`)
			synctest.Wait()
		}
		s.rollouts.Close()
		waiting.Wait()
		if groups.Load() != 2 || ends.Load() != 1 {
			t.Errorf("%d groups, %d ends", groups.Load(), ends.Load())
		}
	})
}

func TestNewRollouts_ListsProblems(t *testing.T) {
	_, err := NewRollouts(&RolloutOptions{MaxRollouts: -1, MaxTurns: -2, MaxBytes: -3, IdleTimeout: -4, GroupTimeout: -5})
	if !errors.Is(err, art.ErrInvalid) {
		t.Fatalf("error is %v", err)
	}
	for _, name := range []string{"MaxRollouts", "MaxTurns", "MaxBytes", "IdleTimeout", "GroupTimeout"} {
		if !strings.Contains(err.Error(), name+" is -") {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}
