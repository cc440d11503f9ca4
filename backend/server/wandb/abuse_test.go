package wandb_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server/wandb"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/internal/stable"
	"github.com/goart-dev/art/internal/wandbwire"
)

// slow is a backend whose trainings, and registrations of one model, wait until they are told.
type slow struct {
	*arttest.Backend
	training    chan struct{} // nil: they do not wait
	registering map[string]chan struct{}
}

// Train implements [art.Backend].
func (b slow) Train(
	ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig,
) (*art.TrainResult, error) {
	if b.training != nil {
		select {
		case <-b.training:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return b.Backend.Train(ctx, m, groups, cfg)
}

// Register implements [art.Backend].
func (b slow) Register(ctx context.Context, m *art.Model) (int, error) {
	if wait := b.registering[m.Name()]; wait != nil {
		wait <- struct{}{}
		<-wait
	}
	return b.Backend.Register(ctx, m)
}

// abused serves two tenants, with limits. end closes the server.
func abused(t *testing.T, backend art.Backend, opts *wandb.Options) (one, two *client, h http.Handler, end func()) {
	t.Helper()
	opts.Bases = []wandb.Base{{Name: "tiny"}}
	opts.Tenants = []wandb.Tenant{{Name: "one", Keys: []string{"a"}}, {Name: "two", Keys: []string{"b"}}}
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	s, err := wandb.New(backend, opts)
	if err != nil {
		t.Fatal(err)
	}
	if h, err = s.Handler(nil); err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(h)
	var once sync.Once
	end = func() {
		once.Do(func() {
			listening.Close()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(end)
	return &client{listening.URL, "a"}, &client{listening.URL, "b"}, h, end
}

// refused sends a request that must have a status and an error with a text.
func (c *client) refused(t *testing.T, what string, status int, text, request, body string) {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	got, answer := c.do(t, method, path, body, nil)
	if got != status || !strings.Contains(answer, text) {
		t.Errorf("%s: status %d: %.300s; want %d with %q", what, got, answer, status, text)
	}
}

// served fails unless a tenant is served as if it were alone.
func (c *client) served(t *testing.T) {
	t.Helper()
	m := c.register(t)
	if status, _ := c.ask(t, "wandb-artifact:///"+m.Entity+"/games/player"); status != http.StatusOK {
		t.Errorf("another tenant asks: status %d", status)
	}
	if status, text := c.do(t, "GET", "/v1/preview/models/"+m.ID+"/checkpoints", nil, nil); status != http.StatusOK {
		t.Errorf("another tenant lists checkpoints: status %d: %s", status, text)
	}
}

func TestAbuse_Bodies(t *testing.T) {
	one, two, _, _ := abused(t, &arttest.Backend{}, &wandb.Options{MaxBody: 2 << 20})
	m := one.register(t)
	large := `{"x":"` + strings.Repeat("x", 3<<20) + `"}`
	for _, path := range []string{"training-jobs", "sft-training-jobs", "models", "models/" + m.ID + "/log"} {
		one.refused(t, path, 413, "send less", "POST /v1/preview/"+path, large)
	}
	one.refused(t, "a data set", 413, "send less", "PUT /v1/preview/artifacts/p/d", large)
	one.refused(t, "steps", 413, "send less", "DELETE /v1/preview/models/"+m.ID+"/checkpoints", large)
	one.refused(t, "a chat", 413, "larger", "POST /v1/chat/completions", large)
	two.served(t)
}

// TestAbuse_Queue: the requests of trainings that wait have a budget, also after a restart.
func TestAbuse_Queue(t *testing.T) {
	backend := slow{Backend: &arttest.Backend{}, training: make(chan struct{})}
	opts := &wandb.Options{Dir: t.TempDir(), Limits: wandb.Limits{QueuedBytes: 3 << 20, Jobs: 100}}
	one, two, _, end := abused(t, backend, opts)
	m := one.register(t)
	body := strings.Replace(one.job(t, m, "{}"), `"logs":[]`, `"logs":["`+strings.Repeat("x", 1<<20)+`"]`, 1)
	for range 2 {
		one.start(t, body)
	}
	one.refused(t, "a third training", 429, "send this one when", "POST /v1/preview/training-jobs", body)
	one.refused(t, "one that never fits", 413, "send fewer", "POST /v1/preview/training-jobs",
		strings.Replace(body, "xxx", strings.Repeat("x", 3<<20), 1))
	two.served(t)
	end()

	one, two, _, _ = abused(t, backend, opts)
	one.refused(t, "after a restart", 429, "send this one", "POST /v1/preview/training-jobs", body)
	two.start(t, two.job(t, two.register(t), "{}"))
	close(backend.training)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if status, _ := one.do(t, "POST", "/v1/preview/training-jobs", body, nil); status == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the queue does not drain")
		}
	}
}

// TestAbuse_Jobs: trainings that wait have a number, too, and clients are told when to come again.
func TestAbuse_Jobs(t *testing.T) {
	backend := slow{Backend: &arttest.Backend{}, training: make(chan struct{})}
	one, two, h, _ := abused(t, backend, &wandb.Options{Limits: wandb.Limits{Jobs: 2}})
	body := one.job(t, one.register(t), "{}")
	one.start(t, body)
	one.start(t, body)
	w := raw(h, "POST", "/v1/preview/training-jobs", body)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	two.start(t, two.job(t, two.register(t), "{}"))
	close(backend.training)
}

// raw calls a handler as tenant one.
func raw(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, bytes.NewReader([]byte(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer a")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestAbuse_Models(t *testing.T) {
	opts := &wandb.Options{Dir: t.TempDir(), Limits: wandb.Limits{Models: 2}}
	one, two, _, end := abused(t, &arttest.Backend{}, opts)
	create := `{"name":"%s","base_model":"tiny"}`
	var m wandbwire.Model
	one.do(t, "POST", "/v1/preview/models", fmt.Sprintf(create, "m1"), &m)
	one.do(t, "POST", "/v1/preview/models", fmt.Sprintf(create, "m2"), nil)
	one.refused(t, "a third", 403, "delete one", "POST /v1/preview/models", fmt.Sprintf(create, "m3"))
	one.refused(t, "a long name", 400, "129 bytes, want 1 to", "POST /v1/preview/models",
		fmt.Sprintf(create, strings.Repeat("x", 129)))
	two.served(t)
	end()
	one, two, _, _ = abused(t, &arttest.Backend{}, opts)
	one.refused(t, "after a restart", 403, "delete one", "POST /v1/preview/models", fmt.Sprintf(create, "m3"))
	if status, text := one.do(t, "DELETE", "/v1/preview/models/"+m.ID, nil, nil); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	if status, text := one.do(t, "POST", "/v1/preview/models", fmt.Sprintf(create, "m3"), nil); status != 200 {
		t.Errorf("in its place: status %d: %s", status, text)
	}
	two.served(t)
}

// TestAbuse_Artifacts: data sets have a budget, which is counted at the start and given back.
func TestAbuse_Artifacts(t *testing.T) {
	opts := &wandb.Options{Dir: t.TempDir(), Limits: wandb.Limits{StoredBytes: 2500}}
	one, two, _, end := abused(t, &arttest.Backend{}, opts)
	data := `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 900) + `"}]}`
	put := func(c *client, name string) (int, string) {
		t.Helper()
		return c.do(t, "PUT", "/v1/preview/artifacts/p/"+name, data, nil)
	}
	for _, name := range []string{"d1", "d2"} {
		if status, text := put(one, name); status != http.StatusOK {
			t.Fatalf("status %d: %s", status, text)
		}
	}
	if status, text := put(one, "d1"); status != http.StatusConflict {
		t.Errorf("twice: status %d: %s", status, text)
	}
	one.refused(t, "a third", 403, "delete data sets", "PUT /v1/preview/artifacts/p/d3", data)
	if status, text := put(two, "d1"); status != http.StatusOK {
		t.Errorf("another tenant: status %d: %s", status, text)
	}
	end()
	one, two, _, _ = abused(t, &arttest.Backend{}, opts)
	one.refused(t, "after a restart", 403, "delete data sets", "PUT /v1/preview/artifacts/p/d3", data)
	if status, text := one.do(t, "DELETE", "/v1/preview/artifacts/p/d1", nil, nil); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	one.refused(t, "another tenant's", 404, "there is no artifact", "DELETE /v1/preview/artifacts/p/d1", "")
	if status, text := put(one, "d3"); status != http.StatusOK {
		t.Errorf("in its place: status %d: %s", status, text)
	}
	two.served(t)
}

// TestAbuse_Runs: what models have on disk counts too: who has too much neither trains nor logs until checkpoints are
// deleted.
func TestAbuse_Runs(t *testing.T) {
	var mu sync.Mutex
	sizes := map[string]int64{}
	opts := &wandb.Options{
		Dir: t.TempDir(), Limits: wandb.Limits{StoredBytes: 100},
		Size: func(project, run string) (int64, error) {
			mu.Lock()
			defer mu.Unlock()
			return sizes[filepath.Join(project, run)], nil
		},
	}
	set := func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		sizes[filepath.Join("one.games", "player")] = n
	}
	one, _, _, end := abused(t, &arttest.Backend{}, opts)
	m := one.register(t)
	body := one.job(t, m, "{}")
	set(101) // the training makes it larger
	one.events(t, one.start(t, body))
	log := "/v1/preview/models/" + m.ID + "/log"
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) { // it is measured afterwards
		if status, _ := one.do(t, "POST", log, `{"split":"val","trajectory_groups":[]}`, nil); status == 403 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the run is not measured")
		}
	}
	end()
	one, two, _, _ := abused(t, &arttest.Backend{}, opts)
	one.refused(t, "a training", 403, "checkpoints", "POST /v1/preview/training-jobs", body)
	one.refused(t, "a model", 403, "checkpoints", "POST /v1/preview/models", `{"name":"other","base_model":"tiny"}`)
	set(50)
	steps := "/v1/preview/models/" + m.ID + "/checkpoints"
	if status, text := one.do(t, "DELETE", steps, `{"steps":[0]}`, nil); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	one.events(t, one.start(t, body))
	two.served(t)
}

// TestAbuse_Counts: what a body has too much of is refused before it takes memory.
func TestAbuse_Counts(t *testing.T) {
	_, two, h, _ := abused(t, &arttest.Backend{}, &wandb.Options{})
	many := func(element string) string { return "[" + strings.Repeat(element+",", 4_000_000) + element + "]" }
	var keys strings.Builder
	for i := range 2_200_000 {
		fmt.Fprintf(&keys, `"%d":1,`, i)
	}
	members := "{" + keys.String() + `"x":{}}`
	group := func(fields string) string { return `{"model_id":"m","trajectory_groups":[{` + fields + `}]}` }
	trajectory := func(fields string) string { return group(`"trajectories":[{` + fields + `}]`) }
	choice := func(fields string) string { return trajectory(`"messages_and_choices":[{` + fields + `}]`) }
	chat := func(fields string) string { return trajectory(`"exchanges":{"chat_completions":[{` + fields + `}]}`) }
	bodies := map[string]string{
		"groups": `{"trajectory_groups":` + many("{}") + `}`, "trajectories": group(`"trajectories":` + many("{}")),
		"numbers":      group(`"trajectories":` + many("1")),
		"nulls":        group(`"trajectories":` + many("null")),
		"in two lists": group(`"trajectories":`+many("{}")[:6_000_002]+`]`) + group(`"trajectories":`+many("{}")),
		"another case": group(`"TRAJECTORIES":` + many("{}")),
		"exceptions":   group(`"exceptions":` + many("{}")), "logs": group(`"logs":` + many(`""`)),
		"metadata": group(`"metadata":` + members), "deep metadata": group(`"metadata":{"a":{"b":` + many("{}") + `}}`),
		"metrics":    trajectory(`"metrics":` + members),
		"histories":  trajectory(`"additional_histories":` + many("{}")),
		"messages":   trajectory(`"messages_and_choices":` + many("{}")),
		"tools":      trajectory(`"tools":` + many("{}")),
		"members":    choice(`"role":"user","content":"x",` + members[1:len(members)-1]),
		"tool calls": choice(`"role":"assistant","tool_calls":` + many("{}")),
		"parts":      choice(`"role":"user","content":` + many("{}")),
		"logprobs":   choice(`"message":{},"logprobs":{"content":` + many("{}") + `}`),
		"exchanges":  trajectory(`"exchanges":{"chat_completions":` + many("{}") + `}`),
		"responses":  trajectory(`"exchanges":{"responses":` + many("{}") + `}`),
		"requests":   chat(`"request":{"messages":` + many("{}") + `}`), "choices": chat(`"response":{"choices":` + many("{}") + `}`),
	}
	for what, body := range bodies {
		check := func(method, path, body string) {
			t.Helper()
			var w *httptest.ResponseRecorder
			allocated := allocates(func() { w = raw(h, method, path, body) })
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "more than") {
				t.Errorf("%s: status %d: %.200s", what, w.Code, w.Body)
			}
			if limit := 7*int64(len(body)) + 2<<20; allocated > limit { // reading it takes several times as much
				t.Errorf("%s: a body of %d bytes takes %d", what, len(body), allocated)
			}
		}
		check("POST", "/v1/preview/training-jobs", body)
	}
	for what, body := range map[string]string{
		"lines": strings.Repeat("{}\n", 1<<16+1), "messages of a data set": `{"messages":` + many("{}") + `}`,
	} {
		w := raw(h, "PUT", "/v1/preview/artifacts/p/d", body)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "more than") {
			t.Errorf("%s: status %d: %.200s", what, w.Code, w.Body)
		}
	}
	two.served(t)
}

// allocates is the memory that f allocates, whether it is freed or not.
func allocates(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestAbuse_SlowModel: while the model of one tenant is being loaded, another tenant's answers.
func TestAbuse_SlowModel(t *testing.T) {
	loading := make(chan struct{})
	backend := slow{Backend: &arttest.Backend{}, registering: map[string]chan struct{}{"large": loading}}
	one, two, _, _ := abused(t, backend, &wandb.Options{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		one.do(t, "POST", "/v1/preview/models", `{"name":"large","base_model":"tiny"}`, nil)
	}()
	<-loading
	within(t, "a model is loaded", func() { two.served(t) })
	loading <- struct{}{}
	<-done
}

// TestAbuse_SlowDisk: while a document of one tenant's training is being written, another tenant is served.
func TestAbuse_SlowDisk(t *testing.T) {
	blocked, unblock := make(chan struct{}), make(chan struct{})
	var first sync.Once
	opts := &wandb.Options{}
	opts.SetDisk(stable.Disk{Hook: func(_, path string, do func() error) error {
		if strings.Contains(path, filepath.Join("jobs", stable.TempPrefix)) && strings.HasSuffix(path, ".json") {
			first.Do(func() { blocked <- struct{}{}; <-unblock })
		}
		return do()
	}})
	one, two, _, _ := abused(t, &arttest.Backend{}, opts)
	m := one.register(t)
	body := one.job(t, m, "{}")
	done := make(chan struct{})
	go func() {
		defer close(done)
		one.do(t, "POST", "/v1/preview/training-jobs", body, nil)
	}()
	<-blocked
	within(t, "a training is written", func() { two.served(t) })
	unblock <- struct{}{}
	<-done
}

// within fails when f takes long.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("another tenant waits while %s", what)
	}
}
