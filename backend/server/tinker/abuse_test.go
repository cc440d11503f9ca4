package tinker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/internal/stable"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// sized is a backend whose saved weights have 100 bytes, and whose samples wait until it is told.
type sized struct {
	*arttest.Backend
	sampling chan struct{} // nil: they do not wait
}

// SavedWeights implements [loop.WeightsKeeper].
func (b sized) SavedWeights(ctx context.Context, m *art.Model) ([]loop.SavedWeights, error) {
	list, err := b.Backend.SavedWeights(ctx, m)
	for i := range list {
		list[i].Bytes = 100
	}
	return list, err
}

// Sample implements driver.Sampler.
func (b sized) Sample(
	ctx context.Context, m *art.Model, ids []int32, opts art.Sampling, piece func(art.Piece) error,
) (*art.ChatResponse, error) {
	if b.sampling != nil {
		<-b.sampling
	}
	return b.Backend.Sample(ctx, m, ids, opts, piece)
}

// abused serves two tenants, ann and bob, with limits.
func abused(t *testing.T, backend Backend, opts *Options) (s *Server, ann, bob *caller) {
	t.Helper()
	opts.Bases, opts.noSync = []Base{{Name: "org/fake", Model: "tiny"}}, opts.disk.Hook == nil
	opts.Tenants = []Tenant{{Name: "ann", Keys: []string{"tml-ann"}}, {Name: "bob", Keys: []string{"tml-bob"}}}
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	s, err := New(backend, opts)
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Handler(&art.HandlerOptions{MaxRequests: 24})
	if err != nil {
		t.Fatal(err)
	}
	return s, &caller{t, h, "tml-ann"}, &caller{t, h, "tml-bob"}
}

// refused sends a request that must have a status and an error with a text.
func (c *caller) refused(what string, status int, text, method, path string, body any) {
	c.t.Helper()
	got, answer := c.call(method, path, body)
	if got != status || !strings.Contains(string(answer), text) {
		c.t.Errorf("%s: status %d: %.300s; want %d with %q", what, got, answer, status, text)
	}
}

// served fails unless a tenant is served as if it were alone.
func (c *caller) served() {
	c.t.Helper()
	model := c.model()
	c.result(c.ok("forward_backward", backward(model, 1, 1)).RequestID)
	session, _, _ := strings.Cut(model, ":")
	c.ok("session_heartbeat", tinkerwire.Request{SessionID: session})
	c.ok("sessions/"+session+"/finish", tinkerwire.Request{})
}

// padded is a forward pass whose body has about n bytes.
func padded(model string, seq, n int) *tinkerwire.ForwardRequest {
	req := backward(model, seq, 1)
	req.Data[0].Input = tinkerwire.NewInput(make([]int32, n/12))
	req.Data[0].Inputs["target_tokens"] = tinkerwire.NewInts(make([]int64, n/12))
	return req
}

func TestAbuse_Bodies(t *testing.T) {
	s, ann, bob := abused(t, &arttest.Backend{}, &Options{MaxBody: 2 << 20})
	defer closeServer(t, s)
	model := ann.model()
	ann.refused("a body", 413, "send less", "POST", "forward_backward", padded(model, 1, 3<<20))
	large := tinkerwire.Request{ModelID: model, SeqID: 1, Path: strings.Repeat("a", maxSmall)}
	for _, path := range []string{"save_weights", "create_session", "client/config", "session_heartbeat", "get_info"} {
		ann.refused(path, 413, "send less", "POST", path, large)
	}
	bob.served()
}

// TestAbuse_Queue: bodies that wait have a budget, also after a restart, and are held once. The request that the others
// wait for is let in, so that the queue drains.
func TestAbuse_Queue(t *testing.T) {
	const body = 1 << 20
	opts := &Options{Dir: t.TempDir(), Limits: Limits{QueuedBytes: 24 << 20, Tokens: 1 << 30}, MaxBody: 2 * body}
	backend := &arttest.Backend{}
	s, ann, bob := abused(t, backend, opts)
	model := ann.model()
	before := heap()
	seq, last := 1, 0
	for range 100 {
		seq++ // 1 never comes
		status, answer := ann.call("POST", "forward_backward", padded(model, seq, body))
		if status != http.StatusOK {
			last = status
			if !strings.Contains(string(answer), "send this one again") {
				t.Errorf("error %s", answer)
			}
			break
		}
	}
	if last != http.StatusTooManyRequests || seq < 15 || seq > 24 {
		t.Errorf("request %d has status %d", seq, last)
	}
	w := ann.raw("forward_backward", padded(model, seq, body).Proto(), tinkerwire.ProtoType)
	if w.Header().Get("Retry-After") == "" {
		t.Error("the refusal does not say when to try again")
	}
	if grown := heap() - before; grown > 26<<20 {
		t.Errorf("the queue takes %d MiB", grown>>20)
	}
	bob.served()
	closeServer(t, s)

	s, ann, bob = abused(t, backend, opts)
	defer closeServer(t, s)
	if held := s.tenantNamed("ann").queued.Held(); held < int64(seq-2)*body {
		t.Errorf("after a restart %d bytes are counted", held)
	}
	ann.refused("after a restart", 429, "send this one again", "POST", "forward_backward", padded(model, seq, body))
	bob.served()
	ann.result(ann.ok("forward_backward", padded(model, 1, body)).RequestID) // the one that is missing
	for id := 2; id < seq; id++ {
		ann.result(futureID(model, id))
	}
	if held := s.tenantNamed("ann").queued.Held(); held != 0 {
		t.Errorf("%d bytes are counted when nothing waits", held)
	}
	ann.result(ann.ok("forward_backward", padded(model, seq, body)).RequestID)
}

// TestAbuse_Journal: the journal of a run that makes no step does not grow without bound. Forward passes are dropped,
// and what would be executed again after a restart has a budget.
func TestAbuse_Journal(t *testing.T) {
	const body = 1 << 19
	opts := &Options{Limits: Limits{QueuedBytes: 4 << 20, ResultBytes: body, Tokens: 1 << 30}, MaxBody: 2 * body}
	s, ann, bob := abused(t, &arttest.Backend{}, opts)
	defer closeServer(t, s)
	model := ann.model()
	size := func() int64 {
		s.mu.Lock()
		r := s.runs[model]
		s.mu.Unlock()
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.journal.Size()
	}
	for seq := 1; seq <= 60; seq++ {
		req := padded(model, seq, body)
		req.ForwardOnly = true
		ann.result(ann.ok("forward_backward", req).RequestID)
	}
	if n := size(); n > 22*body { // half of its limit, and results
		t.Errorf("after 30 MiB of forward passes the journal has %d MiB", n>>20)
	}
	seq, status := 61, 0
	for ; seq < 150; seq++ {
		var answer []byte
		if status, answer = ann.call("POST", "forward_backward", padded(model, seq, body)); status != http.StatusOK {
			if status != http.StatusForbidden || !strings.Contains(string(answer), "call optim_step") {
				t.Errorf("status %d: %s", status, answer)
			}
			break
		}
		ann.result(futureID(model, seq))
	}
	if n := size(); n > 54*body || seq == 150 {
		t.Errorf("after %d requests since the last step the journal has %d MiB", seq-60, n>>20)
	}
	bob.served()
	ann.result(ann.ok("optim_step", step(model, seq)).RequestID)
	ann.result(ann.ok("forward_backward", padded(model, seq+1, body)).RequestID)
}

// heap is the memory in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// raw sends a body as it is.
func (c *caller) raw(path string, body []byte, media string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://localhost"+Prefix+path, bytes.NewReader(body))
	r.Header.Set("Content-Type", media)
	r.Header.Set("X-API-Key", c.key)
	w := httptest.NewRecorder()
	c.h.ServeHTTP(w, r)
	return w
}

// TestAbuse_Samples: samples that wait are in the queue too, by their bodies and their number.
func TestAbuse_Samples(t *testing.T) {
	backend := sized{&arttest.Backend{}, make(chan struct{})}
	s, ann, bob := abused(t, backend, &Options{Limits: Limits{QueuedBytes: 4 << 20}, MaxBody: 1 << 20})
	defer closeServer(t, s)
	ask := tinkerwire.SampleRequest{
		Prompt: tinkerwire.NewInput(make([]int32, 1000)), BaseModel: "org/fake", NumSamples: 100,
	}
	n, status := 0, http.StatusOK
	for ; status == http.StatusOK && n < 100; n++ {
		status, _ = ann.call("POST", "asample", ask)
	}
	if status != http.StatusTooManyRequests || n > 10 {
		t.Errorf("request %d has status %d", n, status)
	}
	bob.served()
	close(backend.sampling)
	queued := s.tenantNamed("ann").queued
	for deadline := time.Now().Add(10 * time.Second); queued.Held() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the queue does not drain")
		}
	}
	ann.ok("asample", ask)
}

// TestAbuse_Metadata: what clients write to sessions, runs and weights is bounded.
func TestAbuse_Metadata(t *testing.T) {
	s, ann, bob := abused(t, &arttest.Backend{}, &Options{Limits: Limits{MetadataBytes: 1000}})
	defer closeServer(t, s)
	long := strings.Repeat("x", 1001)
	data := map[string]any{"a": long}
	model := ann.model()
	session, _, _ := strings.Cut(model, ":")
	for what, req := range map[string]struct {
		path string
		body tinkerwire.Request
	}{
		"tags":      {"create_session", tinkerwire.Request{Tags: []string{long}}},
		"a name":    {"create_session", tinkerwire.Request{DisplayName: long}},
		"a project": {"create_session", tinkerwire.Request{ProjectID: long}},
		"a session": {"create_session", tinkerwire.Request{UserMetadata: data}},
		"a run": {"create_model", tinkerwire.Request{
			SessionID: session, ModelSeqID: new(1), BaseModel: "org/fake", UserMetadata: data}},
		"a run of weights": {"load_weights", tinkerwire.Request{SessionID: session, ModelSeqID: new(1), UserMetadata: data}},
		"weights":          {"save_weights", tinkerwire.Request{ModelID: model, SeqID: 1, Path: "a", UserMetadata: data}},
		"a sampler": {"save_weights_for_sampler", tinkerwire.Request{
			ModelID: model, SeqID: 1, Path: "a", UserMetadata: data}},
	} {
		ann.refused(what, 413, "keep less here", "POST", req.path, req.body)
	}
	many := tinkerwire.Request{Tags: make([]string, maxTags+1)}
	ann.refused("many tags", 400, "tags", "POST", "create_session", many)
	var out tinkerwire.Result
	for seq := 1; out.Error == "" && seq < 100; seq++ { // each is small, and they are in one file
		name := fmt.Sprintf("n%d", seq)
		small := tinkerwire.Request{ModelID: model, SeqID: seq, Path: name, UserMetadata: map[string]any{"a": long[:900]}}
		if err := json.Unmarshal(ann.result(ann.ok("save_weights", small).RequestID), &out); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(out.Error, "delete some weights") {
		t.Errorf("the metadata of weights together: %q", out.Error)
	}
	bob.served()
}

// TestAbuse_Weights: saved weights have a budget, which is counted at the start and given back.
func TestAbuse_Weights(t *testing.T) {
	opts := &Options{Dir: t.TempDir(), Limits: Limits{StoredBytes: 250}}
	backend := sized{Backend: &arttest.Backend{}}
	s, ann, bob := abused(t, backend, opts)
	model := ann.model()
	save := func(seq int, name string, overwrite bool) (out tinkerwire.Result) {
		t.Helper()
		req := tinkerwire.Request{ModelID: model, SeqID: seq, Path: name, Overwrite: overwrite}
		if err := json.Unmarshal(ann.result(ann.ok("save_weights", req).RequestID), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	held := func(want int64) {
		t.Helper()
		if got := s.tenantNamed("ann").stored.Held(); got != want {
			t.Errorf("%d bytes are counted, want %d", got, want)
		}
	}
	save(1, "a", false)
	save(2, "b", false)
	held(200)
	if out := save(3, "c", false); !strings.Contains(out.Error, "delete some") || out.Category != "user" {
		t.Errorf("beyond the budget: %+v", out)
	}
	held(200)
	bob.served()
	closeServer(t, s)

	s, ann, bob = abused(t, backend, opts)
	defer func() { closeServer(t, s) }()
	held(200)
	if out := save(4, "d", false); !strings.Contains(out.Error, "delete some") {
		t.Errorf("after a restart: %+v", out)
	}
	if status, answer := ann.call("DELETE", "training_runs/"+model+"/checkpoints/weights/a", nil); status != 204 {
		t.Fatalf("status %d: %s", status, answer)
	}
	held(100)
	if out := save(5, "b", true); out.Error != "" { // in place of the other
		t.Errorf("overwritten: %+v", out)
	}
	held(100)
	save(6, "c", false)
	held(200)
	s.tenantNamed("ann").stored.Add(100)
	ann.refused("before it is queued", 403, "delete some", "POST", "save_weights_for_sampler",
		tinkerwire.Request{ModelID: model, SeqID: 7, Path: "e"})
	s.tenantNamed("ann").stored.Add(-100)
	bob.served()
}

// TestAbuse_Counts: what a body has too much of is refused before it takes memory.
func TestAbuse_Counts(t *testing.T) {
	s, ann, bob := abused(t, &arttest.Backend{}, &Options{})
	defer closeServer(t, s)
	model := ann.model()
	many := func(element string) string { return "[" + strings.Repeat(element+",", 4_100_000) + element + "]" }
	forward := func(data string) string {
		return fmt.Sprintf(`{"forward_backward_input":{"loss_fn":"cross_entropy","data":%s},"model_id":%q,"seq_id":1}`,
			data, model)
	}
	tensor := func(t string) string { return forward(`[{"loss_fn_inputs":{"target_tokens":` + t + `}}]`) }
	var keys strings.Builder
	for i := range 500_000 {
		fmt.Fprintf(&keys, `"%d":{},`, i)
	}
	members := "{" + keys.String() + `"x":{}}`
	sample := func(fields string) string { return `{"base_model":"org/fake",` + fields + `}` }
	for what, c := range map[string]struct{ path, body string }{
		"data":             {"forward_backward", forward(many("{}"))},
		"data of numbers":  {"forward_backward", forward(many("1"))},
		"data of nulls":    {"forward", strings.Replace(forward(many("null")), "forward_backward_input", "forward_input", 1)},
		"data, other case": {"forward_backward", strings.Replace(forward(many("{}")), "data", "D\\u0041TA", 1)},
		"chunks":           {"forward_backward", forward(`[{"model_input":{"chunks":` + many("{}") + `}}]`)},
		"tokens":           {"forward_backward", forward(`[{"model_input":{"chunks":[{"tokens":` + many("1") + `}]}}]`)},
		"tensors":          {"forward_backward", forward(`[{"loss_fn_inputs":` + members + `}]`)},
		"shape":            {"forward_backward", tensor(`{"shape":` + many("1") + `}`)},
		"offsets":          {"forward_backward", tensor(`{"sparse_crow_indices":` + many("1") + `}`)},
		"columns":          {"forward_backward", tensor(`{"sparse_col_indices":` + many("1") + `}`)},
		"options":          {"forward_backward", strings.Replace(forward("[]"), `"data"`, `"loss_fn_config":`+members+`,"data"`, 1)},
		"prompt":           {"asample", sample(`"prompt":{"chunks":[{"tokens":` + many("1") + `}]}`)},
		"prompt's chunks":  {"asample", sample(`"prompt":{"chunks":` + many("{}") + `}`)},
		"stops":            {"asample", sample(`"sampling_params":{"stop":` + many(`""`) + `}`)},
		"target logprobs":  {"asample", sample(`"target_prompt_logprobs":{"data":` + many("1") + `}`)},
	} {
		allocated := allocates(func() {
			if w := ann.raw(c.path, []byte(c.body), tinkerwire.JSONType); w.Code != http.StatusBadRequest {
				t.Errorf("%s: status %d: %.200s", what, w.Code, w.Body)
			}
		})
		if limit := 6*int64(len(c.body)) + 1<<20; allocated > limit { // reading it takes several times as much
			t.Errorf("%s: a body of %d bytes takes %d", what, len(c.body), allocated)
		}
	}
	chunks := &tinkerwire.ForwardRequest{ModelID: model, SeqID: 1, Data: make([]tinkerwire.Datum, 500_000)}
	body := chunks.Proto()
	allocated := allocates(func() {
		w := ann.raw("forward_backward", body, tinkerwire.ProtoType)
		if w.Code != 400 || !strings.Contains(w.Body.String(), "more data") {
			t.Errorf("data in protobuf: status %d: %s", w.Code, w.Body)
		}
	})
	if allocated > 6*int64(len(body))+1<<20 {
		t.Errorf("protobuf of %d bytes takes %d", len(body), allocated)
	}
	bob.served()
}

// allocates is the memory that f allocates, whether it is freed or not.
func allocates(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestAbuse_Targets: targets of a position are bounded, also those that a sparse tensor only names.
func TestAbuse_Targets(t *testing.T) {
	s, ann, bob := abused(t, &arttest.Backend{}, &Options{})
	defer closeServer(t, s)
	model := ann.model()
	for i, tensor := range []tinkerwire.Tensor{
		tinkerwire.NewInts(make([]int64, 257), 1, 257),
		{DType: tinkerwire.Int64, Shape: []int64{1, 32_000}, Rows: []int64{0, 0}, Columns: []int64{}},
	} {
		req := backward(model, i+1, 1)
		req.Data[0].Inputs["target_tokens"] = tensor
		if body := ann.result(ann.ok("forward_backward", req).RequestID); !strings.Contains(string(body), "at most 256") {
			t.Errorf("%v: %s", tensor.Shape, body)
		}
	}
	bob.served()
}

// TestAbuse_Polls: polls of results that do not come are bounded, and keep out nobody, though they are many more than
// MaxRequests.
func TestAbuse_Polls(t *testing.T) {
	s, ann, bob := abused(t, &arttest.Backend{}, &Options{Limits: Limits{Polls: 50}, PollTime: time.Minute})
	model := ann.model()
	id := ann.ok("optim_step", step(model, 2)).RequestID // 1 never comes
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { ann.call("POST", "retrieve_future", tinkerwire.Request{RequestID: id}) })
	}
	tenant := s.tenantNamed("ann")
	for {
		tenant.mu.Lock()
		n := tenant.polls
		tenant.mu.Unlock()
		if n == 50 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	ann.refused("a further poll", 429, "poll fewer", "POST", "retrieve_future", tinkerwire.Request{RequestID: id})
	session, _, _ := strings.Cut(model, ":")
	ann.ok("session_heartbeat", tinkerwire.Request{SessionID: session})
	bob.served()
	closeServer(t, s) // it ends the polls
	all.Wait()
	if tenant.polls != 0 {
		t.Errorf("%d polls are counted when there are none", tenant.polls)
	}
}

// TestAbuse_Results: results that are not read have a budget; the oldest is dropped.
func TestAbuse_Results(t *testing.T) {
	s, ann, bob := abused(t, &arttest.Backend{}, &Options{Limits: Limits{ResultBytes: 5 * queueEntry}})
	defer closeServer(t, s)
	model := ann.model()
	var ids []string
	for seq := range 20 {
		ids = append(ids, ann.ok("forward_backward", backward(model, seq+1, 1)).RequestID)
	}
	ann.result(ids[19])
	s.mu.Lock()
	kept, held := len(s.tenantNamed("ann").results), s.tenantNamed("ann").resultBytes
	s.mu.Unlock()
	if kept > 5 || kept < 3 || held > 5*queueEntry {
		t.Errorf("%d results of %d bytes are kept", kept, held)
	}
	ann.refused("the oldest", 404, "has been dropped", "POST", "retrieve_future", tinkerwire.Request{RequestID: ids[0]})
	bob.served()
}

// TestAbuse_SlowDisk: while the documents of one tenant are being written, nobody waits, and neither does its own
// heartbeat.
func TestAbuse_SlowDisk(t *testing.T) {
	blocked, unblock := make(chan struct{}), make(chan struct{})
	var slow sync.Map // "1": the next document of a session waits
	hook := func(_, path string, do func() error) error {
		if _, ok := slow.Load("slow"); ok && strings.Contains(path, kindSessions) {
			slow.Delete("slow")
			blocked <- struct{}{}
			<-unblock
		}
		return do()
	}
	s, ann, bob := abused(t, &arttest.Backend{}, &Options{disk: stable.Disk{Hook: hook}})
	defer closeServer(t, s)
	session, other := ann.session(), bob.session()
	for what, write := range map[string]func(){
		"a session": func() { ann.ok("create_session", tinkerwire.Request{}) },
		"a sampler": func() {
			ann.ok("create_sampling_session", tinkerwire.Request{
				SessionID: session, SamplingSessionSeqID: new(0), BaseModel: "org/fake"})
		},
		"a run": func() {
			ann.ok("create_model", tinkerwire.Request{SessionID: session, ModelSeqID: new(0), BaseModel: "org/fake"})
		},
	} {
		slow.Store("slow", true)
		done := make(chan struct{})
		go func() { defer close(done); write() }()
		<-blocked
		beats := make(chan struct{})
		go func() {
			defer close(beats)
			bob.ok("session_heartbeat", tinkerwire.Request{SessionID: other})
			ann.ok("session_heartbeat", tinkerwire.Request{SessionID: session})
		}()
		select {
		case <-beats:
		case <-time.After(10 * time.Second):
			t.Errorf("a heartbeat waits while %s is written", what)
		}
		unblock <- struct{}{}
		<-done
		<-beats
	}
	bob.served()
}
