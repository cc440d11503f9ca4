package wandb_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server/wandb"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/internal/wandbwire"
)

// client is a client of a server under test.
type client struct {
	url, key string
}

// serve starts a server for two tenants, with keys a and b, over a backend.
func serve(t *testing.T, backend art.Backend, dir string) *client {
	t.Helper()
	return serveEvents(t, backend, dir, nil)
}

// serveEvents starts such a server, with events.
func serveEvents(t *testing.T, backend art.Backend, dir string, events *art.Events) *client {
	t.Helper()
	s, err := wandb.New(backend, &wandb.Options{
		Dir: dir, Events: events, Bases: []wandb.Base{{Name: "tiny"}, {Name: "other"}}, Limits: wandb.Limits{Jobs: 3},
		Tenants: []wandb.Tenant{{Name: "one", Keys: []string{"a"}}, {Name: "two", Keys: []string{"b"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Handler(nil)
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(h)
	t.Cleanup(func() {
		listening.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &client{listening.URL, "a"}
}

// do sends a request, and reads the answer into out unless it is nil.
func (c *client) do(t *testing.T, method, path string, body, out any) (status int, text string) {
	t.Helper()
	var data []byte
	switch b := body.(type) {
	case nil:
	case string:
		data = []byte(b)
	default:
		data, _ = json.Marshal(b)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, c.url+path, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(resp.Body)
	if err == nil && out != nil && resp.StatusCode == http.StatusOK {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		t.Fatalf("%s %s: %v in %s", method, path, err, data)
	}
	return resp.StatusCode, string(data)
}

// register registers the model games/player.
func (c *client) register(t *testing.T) wandbwire.Model {
	t.Helper()
	var m wandbwire.Model
	body := `{"entity":null,"project":"games","name":"player","base_model":"tiny","return_existing":true}`
	if status, text := c.do(t, "POST", "/v1/preview/models", body, &m); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	return m
}

// ask returns a choice as the server gives it.
func (c *client) ask(t *testing.T, model string) (int, json.RawMessage) {
	t.Helper()
	var out struct{ Choices []json.RawMessage }
	body := map[string]any{"model": model, "messages": []any{map[string]string{"role": "user", "content": "hi"}}}
	status, _ := c.do(t, "POST", "/v1/chat/completions", body, &out)
	if status != http.StatusOK {
		return status, nil
	}
	return status, out.Choices[0]
}

// job is the body of a training of two replies.
func (c *client) job(t *testing.T, m wandbwire.Model, config string) string {
	t.Helper()
	_, choice := c.ask(t, "wandb-artifact:///"+m.Entity+"/games/player")
	trajectory := `{"messages_and_choices":[{"role":"user","content":"hi"},%s],"tools":null,"additional_histories":[],` +
		`"reward":%d,"metrics":{},"metadata":{"list":[1],"none":null},"logs":[]}`
	return fmt.Sprintf(`{"model_id":%q,"trajectory_groups":[{"trajectories":[`+trajectory+`,`+trajectory+
		`],"exceptions":[{"type":"ValueError","message":"m","traceback":"t"}]}],"experimental_config":%s}`,
		m.ID, choice, 0, choice, 1, config)
}

// events waits for the end of a training.
func (c *client) events(t *testing.T, id string) []wandbwire.Event {
	t.Helper()
	for range 2000 {
		var page wandbwire.Page[wandbwire.Event]
		if status, text := c.do(t, "GET", "/v1/preview/training-jobs/"+id+"/events", nil, &page); status != http.StatusOK {
			t.Fatalf("status %d: %s", status, text)
		}
		if n := len(page.Data); n > 0 && slices.Contains([]string{"training_ended", "training_failed"}, page.Data[n-1].Type) {
			return page.Data
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the training does not end")
	return nil
}

// kinds are the types of events.
func kinds(events []wandbwire.Event) (list []string) {
	for _, e := range events {
		list = append(list, e.Type)
	}
	return list
}

// start begins a training.
func (c *client) start(t *testing.T, body string) string {
	t.Helper()
	var job wandbwire.Job
	if status, text := c.do(t, "POST", "/v1/preview/training-jobs", body, &job); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	return job.ID
}

var done = []string{"training_started", "gradient_step", "training_ended"}

// TestTrain_ExactSamples: what a client hands back is trained on with the very tokens that were sampled.
func TestTrain_ExactSamples(t *testing.T) {
	var seen []*art.TrajectoryGroup
	backend := &arttest.Backend{}
	backend.Learn = func(_ context.Context, _ *art.Model, groups []*art.TrajectoryGroup, _ *art.TrainConfig) error {
		seen = groups
		return nil
	}
	c := serve(t, backend, t.TempDir())
	m := c.register(t)
	if again := c.register(t); again.ID != m.ID {
		t.Errorf("ids %s and %s", m.ID, again.ID)
	}
	body := c.job(t, m, `{"learning_rate":0.001,"loss_fn":null,"ppo":false,"scale_rewards":true}`)
	if got := kinds(c.events(t, c.start(t, body))); !slices.Equal(got, done) {
		t.Fatalf("events %v", got)
	}
	g := seen[0]
	s := g.Trajectories[1].Messages[1].Sample
	if s == nil || len(s.IDs) == 0 || len(s.PromptIDs) == 0 || len(s.Logprobs) != len(s.IDs) {
		t.Fatalf("sample %+v", s)
	}
	if g.Trajectories[1].Reward != 1 || g.Failures[0].Type != "ValueError" || g.Trajectories[0].Metadata["list"] != "[1]" {
		t.Errorf("group %+v", g)
	}
	var page wandbwire.Page[wandbwire.Checkpoint]
	c.do(t, "GET", "/v1/preview/models/"+m.ID+"/checkpoints?limit=1&order=desc", nil, &page)
	if len(page.Data) != 1 || page.Data[0].Step != 1 {
		t.Errorf("checkpoints %+v", page)
	}
	for name, want := range map[string]int{
		"": 200, ":latest": 200, ":step1": 200, ":step7": 404, ":v1": 404, "x": 404, "/x": 404,
	} {
		if status, _ := c.ask(t, "wandb-artifact:///one/games/player"+name); status != want {
			t.Errorf("%q: status %d, want %d", name, status, want)
		}
	}
}

// TestEvents: those of the options are told of trainings, whoever asks for them.
func TestEvents(t *testing.T) {
	commits := make(chan art.Commit, 4)
	c := serveEvents(t, &arttest.Backend{}, t.TempDir(), &art.Events{Commit: func(e art.Commit) { commits <- e }})
	m := c.register(t)
	c.events(t, c.start(t, c.job(t, m, `{"learning_rate":0.001}`)))
	if e := <-commits; e.Result.Step != 1 || len(e.Groups) != 1 {
		t.Errorf("commit %+v", e)
	}
}

// TestTenants: each route is tried with another's model and training, and without a key.
func TestTenants(t *testing.T) {
	c := serve(t, &arttest.Backend{}, t.TempDir())
	m := c.register(t)
	job := c.start(t, c.job(t, m, "{}"))
	c.events(t, job)
	routes := []struct{ method, path, body string }{
		{"DELETE", "models/" + m.ID, ""}, {"POST", "models/" + m.ID + "/log", `{"split":"val","trajectory_groups":[]}`},
		{"GET", "models/" + m.ID + "/checkpoints", ""}, {"DELETE", "models/" + m.ID + "/checkpoints", `{"steps":[0]}`},
		{"POST", "training-jobs", c.job(t, m, "{}")}, {"GET", "training-jobs/" + job + "/events", ""},
		{"POST", "sft-training-jobs", `{"model_id":"` + m.ID + `","training_data_url":"wandb-artifact:///one/games/d:v0"}`},
		{"POST", "models", `{"entity":"one","project":"games","name":"player","base_model":"tiny","return_existing":true}`},
	}
	for key, want := range map[string][]int{"b": {404, 403}, "": {401}, "c": {401}} {
		other := &client{c.url, key}
		for _, r := range routes {
			status, text := other.do(t, r.method, "/v1/preview/"+r.path, r.body, nil)
			if !slices.Contains(want, status) || strings.Contains(text, "games") && key != "b" {
				t.Errorf("key %q: %s %s: status %d: %s", key, r.method, r.path, status, text)
			}
		}
		if status, _ := other.ask(t, "wandb-artifact:///one/games/player"); !slices.Contains(want, status) {
			t.Errorf("key %q: another's model answers with status %d", key, status)
		}
	}
	if status, _ := c.ask(t, "wandb-artifact:///one/games/player"); status != http.StatusOK {
		t.Errorf("status %d for its owner", status)
	}
}

// TestJob_Restart: a training that was stopped is executed by the next server, once.
func TestJob_Restart(t *testing.T) {
	dir, began := t.TempDir(), make(chan struct{})
	backend := &arttest.Backend{}
	backend.Learn = func(ctx context.Context, _ *art.Model, _ []*art.TrajectoryGroup, _ *art.TrainConfig) error {
		close(began)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	var m wandbwire.Model
	var job string
	t.Run("stopped", func(t *testing.T) {
		c := serve(t, backend, dir)
		m = c.register(t)
		job = c.start(t, c.job(t, m, "{}"))
		<-began
	})
	backend.Learn = nil
	for range 2 { // the second server has nothing left to do
		t.Run("restarted", func(t *testing.T) {
			c := serve(t, backend, dir)
			if got := kinds(c.events(t, job)); !slices.Equal(got, done) {
				t.Errorf("events %v", got)
			}
			var page wandbwire.Page[wandbwire.Checkpoint]
			if c.do(t, "GET", "/v1/preview/models/"+m.ID+"/checkpoints?order=desc", nil, &page); page.Data[0].Step != 1 {
				t.Errorf("step %d", page.Data[0].Step)
			}
		})
	}
}

// TestJob_Fails: the reason reaches the client.
func TestJob_Fails(t *testing.T) {
	backend := &arttest.Backend{}
	backend.Learn = func(context.Context, *art.Model, []*art.TrajectoryGroup, *art.TrainConfig) error {
		return errors.New("it diverged")
	}
	c := serve(t, backend, t.TempDir())
	events := c.events(t, c.start(t, c.job(t, c.register(t), "{}")))
	last := events[len(events)-1]
	text, _ := last.Data["error_message"].(string)
	if last.Type != "training_failed" || !strings.Contains(text, "diverged") {
		t.Errorf("event %+v", last)
	}
}

// TestRequests_Refused: bad requests say what is wrong, and change nothing.
func TestRequests_Refused(t *testing.T) {
	c := serve(t, &arttest.Backend{}, t.TempDir())
	m := c.register(t)
	groups := func(trajectory string) string {
		return fmt.Sprintf(`{"model_id":%q,"trajectory_groups":[{"trajectories":[%s]}]}`, m.ID, trajectory)
	}
	sft := func(url, config string) string {
		return fmt.Sprintf(`{"model_id":%q,"training_data_url":%q,"config":%s}`, m.ID, url, config)
	}
	for _, r := range []struct {
		method, path, body string
		status             int
		text               string
	}{
		{"POST", "models", `{"name":"player","project":"games","base_model":"tiny"}`, 409, "return_existing"},
		{"POST", "models", `{"name":"player","project":"games","base_model":"other","return_existing":true}`, 409, "base_model"},
		{"POST", "models", `{"name":"new","base_model":"unknown"}`, 400, `\"tiny\"`},
		{"POST", "models", `{"name":"../up","base_model":"tiny"}`, 400, "name"},
		{"POST", "models", `{"name":"a:b","base_model":"tiny"}`, 400, "letters"},
		{"POST", "models", `[`, 400, "body"},
		{"POST", "training-jobs", c.job(t, m, `{"plot_tensors":true}`), 400, "plot_tensors"},
		{"POST", "training-jobs", c.job(t, m, `{"loss_fn":"x"}`), 400, "loss_fn"},
		{"POST", "training-jobs", c.job(t, m, `{"learning_rate":-1}`), 400, "learning rate"},
		{"POST", "training-jobs", fmt.Sprintf(`{"model_id":%q,"trajectory_groups":[]}`, m.ID), 400, "empty"},
		{"POST", "training-jobs", groups(`{"exchanges":{"messages":[{}]}}`), 400, "exchanges"},
		{"POST", "training-jobs", groups(`{"messages_and_choices":[{"message":{"role":"assistant","content":"x"}}]}`), 400,
			"logprobs"},
		{"POST", "training-jobs", groups(`{"messages_and_choices":[{"message":{"role":"assistant","content":"x"},` +
			`"logprobs":{"content":[{"token":"x","logprob":-1}]}}]}`), 400, "art_sample"},
		{"POST", "sft-training-jobs", sft("https://example.org/x", "{}"), 400, "training_data_url"},
		{"POST", "sft-training-jobs", sft("wandb-artifact:///one/games/../../../x:v0", "{}"), 400, "training_data_url"},
		{"POST", "sft-training-jobs", sft("wandb-artifact:///one/games/..:v0", "{}"), 400, "letters"},
		{"POST", "sft-training-jobs", sft("wandb-artifact:///one/games/no:v0", "{}"), 404, "PUT"},
		{"POST", "sft-training-jobs", sft("wandb-artifact:///one/games/no:v0", `{"learning_rate":[1,2]}`), 400, "batch"},
		{"GET", "models/" + m.ID + "/checkpoints?order=up", "", 400, "asc"},
		{"GET", "models/" + m.ID + "/checkpoints?limit=0", "", 400, "limit"},
		{"GET", "models/" + m.ID + "/checkpoints?after=x", "", 400, "after"},
		{"GET", "nothing", "", 404, "not served"},
	} {
		status, text := c.do(t, r.method, "/v1/preview/"+r.path, r.body, nil)
		if status != r.status || !strings.Contains(text, r.text) {
			t.Errorf("%s %s %.120s: status %d: %s", r.method, r.path, r.body, status, text)
		}
	}
}

// TestSFT: a data set that was put here is trained on.
func TestSFT(t *testing.T) {
	c := serve(t, &arttest.Backend{}, t.TempDir())
	m := c.register(t)
	data := `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"tools":null}` + "\n"
	var put struct{ URL string }
	if status, text := c.do(t, "PUT", "/v1/preview/artifacts/games/data", data, &put); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	if status, _ := c.do(t, "PUT", "/v1/preview/artifacts/games/data", data, nil); status != http.StatusConflict {
		t.Errorf("status %d for the same name", status)
	}
	var job wandbwire.Job
	body := map[string]any{"model_id": m.ID, "training_data_url": put.URL,
		"config": map[string]any{"learning_rate": []float64{1e-3, 1e-3}, "assistant_turns": "last"}}
	if status, text := c.do(t, "POST", "/v1/preview/sft-training-jobs", body, &job); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	if got := kinds(c.events(t, job.ID)); !slices.Equal(got, done) {
		t.Errorf("events %v", got)
	}
}

// TestDelete: a deleted model is gone for its clients, and a new one of its name begins at step 0.
func TestDelete(t *testing.T) {
	c := serve(t, &arttest.Backend{}, t.TempDir())
	m := c.register(t)
	c.events(t, c.start(t, c.job(t, m, "{}")))
	if status, text := c.do(t, "DELETE", "/v1/preview/models/"+m.ID, nil, nil); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	if status, _ := c.ask(t, "wandb-artifact:///one/games/player"); status != http.StatusNotFound {
		t.Errorf("it answers with status %d", status)
	}
	again := c.register(t)
	if _, choice := c.ask(t, "wandb-artifact:///one/games/player"); again.ID == m.ID ||
		!strings.Contains(string(choice), `"step":0`) && strings.Contains(string(choice), `"step":1`) {
		t.Errorf("id %s, choice %s", again.ID, choice)
	}
}

// exchange is a line of a recording.
type exchange struct {
	Method, Path string
	Body, Answer json.RawMessage
	Status       int
}

// TestRecordings: what openpipe-art sends is answered as it was when it was recorded: with the same status, and the
// same fields. internal/dev/conformance/openpipe/record.py has the command.
func TestRecordings(t *testing.T) {
	file, err := os.Open("testdata/openpipe-0.5.18.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c := serve(t, &arttest.Backend{}, t.TempDir())
	ids := []string{"/default/", "/one/"} // recorded, and here
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	routes := 0
	for ; lines.Scan(); routes++ {
		var x exchange
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		replace := strings.NewReplacer(ids...)
		var body any
		if x.Body != nil && string(x.Body) != "null" {
			body = replace.Replace(string(x.Body))
		}
		if path := replace.Replace(x.Path); strings.HasSuffix(path, "/events") {
			c.events(t, strings.Split(path, "/")[4]) // it was recorded after the end
		}
		var got map[string]any
		status, text := c.do(t, x.Method, replace.Replace(x.Path), body, &got)
		var want map[string]any
		if err := json.Unmarshal(x.Answer, &want); err != nil {
			t.Fatal(err)
		}
		if fields(got) != fields(want) || status != x.Status {
			t.Errorf("%s %s: status %d: %.300s, was %d: %.300s", x.Method, x.Path, status, text, x.Status, x.Answer)
		}
		if id, ok := want["id"].(string); ok && !strings.Contains(x.Path, "chat") {
			ids = append(ids, id, got["id"].(string))
		}
	}
	if err := lines.Err(); err != nil || routes < 8 {
		t.Errorf("%d requests, error %v", routes, err)
	}
}

// fields are the names of an object's fields.
func fields(object map[string]any) string {
	return strings.Join(slices.Sorted(maps.Keys(object)), " ")
}

// FuzzRoutes: whatever a client sends, the server neither panics nor blames itself.
func FuzzRoutes(f *testing.F) {
	s, err := wandb.New(&arttest.Backend{}, &wandb.Options{Dir: f.TempDir(), Bases: []wandb.Base{{Name: "tiny"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	h, err := s.Handler(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("POST", "models", `{"name":"n","base_model":"tiny","return_existing":true}`)
	f.Add("POST", "training-jobs", `{"model_id":"m","trajectory_groups":[{"trajectories":[{"messages_and_choices":[`+
		`{"message":{"role":"assistant"},"art_sample":{"ids":[1]}}],"exchanges":{"chat_completions":[{}]}}]}]}`)
	f.Add("PUT", "artifacts/p/..", `{"messages":[]}`)
	f.Add("GET", "models/x/checkpoints?limit=-1", "")
	f.Fuzz(func(t *testing.T, method, path, body string) {
		target := "http://localhost/v1/preview/" + path
		r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
		if err != nil {
			t.Skip()
		}
		r.RequestURI, r.Host = r.URL.RequestURI(), "localhost"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusInternalServerError {
			t.Errorf("%s %s: %s", method, path, w.Body)
		}
	})
}
