package tinker

import (
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// newTenants serves two tenants.
func newTenants(t *testing.T, limits Limits) (*Server, *caller, *caller) {
	t.Helper()
	s, h := newFake(t, &Options{
		Dir: t.TempDir(), Bases: []Base{{Name: "org/fake", Model: "tiny"}}, noSync: true, Limits: limits,
		Tenants: []Tenant{{Name: "ann"}, {Name: "bob", Keys: []string{"tml-bob"}, Prices: access.Prices{Trained: 2e6}}},
	})
	return s, &caller{t, h, "tml-secret"}, &caller{t, h, "tml-bob"}
}

// TestTenants_SeeNothingOfEachOther tries every route with what is another tenant's.
func TestTenants_SeeNothingOfEachOther(t *testing.T) {
	_, ann, bob := newTenants(t, Limits{})
	of := ann.everything()
	tries := of.tries(bob.session())
	requireEveryRoute(t, func(yield func(method, path string) bool) {
		for _, try := range tries {
			if !yield(try.method, try.path) {
				return
			}
		}
	})
	for _, try := range tries {
		status, body := bob.call(try.method, try.path, try.body)
		if status != http.StatusNotFound && status != http.StatusGone {
			t.Errorf("%s %s: status %d: %s", try.method, try.path, status, body)
		}
	}
	if status, _ := bob.call("POST", "sessions/"+of.session+"/finish", tinkerwire.Request{}); status != http.StatusOK {
		t.Errorf("finish of an unknown session: status %d", status)
	}
	for _, list := range []string{"training_runs", "checkpoints", "sessions"} {
		if _, body := bob.call("GET", list, nil); strings.Contains(string(body), of.session) {
			t.Errorf("%s shows another tenant's: %s", list, body)
		}
	}
	stranger := *bob
	stranger.key = "tml-other"
	if status, _ := stranger.call("GET", "training_runs", nil); status != http.StatusUnauthorized {
		t.Errorf("an unknown key: status %d", status)
	}
	ann.await("optim_step", step(of.model, 4)) // nothing has happened to it
}

// owned is what a tenant has.
type owned struct{ session, model, future, path, sampler string }

// session creates one.
func (c *caller) session() string {
	c.t.Helper()
	return c.ok("create_session", tinkerwire.Request{SDKVersion: "test"}).SessionID
}

// everything creates a run, weights, a sampler and a result. The next seq_id of the run is 4.
func (c *caller) everything() *owned {
	c.t.Helper()
	of := &owned{model: c.model()}
	of.session, _, _ = strings.Cut(of.model, ":")
	of.future = c.ok("forward_backward", backward(of.model, 1, 1)).RequestID
	c.result(of.future)
	of.path = c.await("save_weights", tinkerwire.Request{ModelID: of.model, SeqID: 2, Path: "a"}).Path
	of.sampler = c.await("save_weights_for_sampler", tinkerwire.Request{
		ModelID: of.model, SeqID: 3, SamplingSessionSeqID: new(0),
	}).SamplingSessionID
	return of
}

// try is a request.
type try struct {
	method, path string
	body         any
}

// tries reach for it by every route that can, from a session of another key.
func (of *owned) tries(session string) []try {
	prompt := tinkerwire.NewInput([]int32{1})
	run := "training_runs/" + of.model
	return []try{
		{"POST", "forward_backward", backward(of.model, 4, 1)},
		{"POST", "forward", backward(of.model, 4, 1)},
		{"POST", "optim_step", step(of.model, 4)},
		{"POST", "save_weights", tinkerwire.Request{ModelID: of.model, SeqID: 4, Path: "b"}},
		{"POST", "save_weights_for_sampler", tinkerwire.Request{ModelID: of.model, SeqID: 4, Path: "b"}},
		{"POST", "save_weights_external", tinkerwire.Request{ModelID: of.model, SeqID: 4, Path: "b"}},
		{"POST", "load_weights", tinkerwire.Request{ModelID: of.model, SeqID: 4, Path: of.path}},
		{"POST", "load_weights", tinkerwire.Request{SessionID: session, ModelSeqID: new(1), Path: of.path}},
		{"POST", "create_model", tinkerwire.Request{SessionID: of.session, ModelSeqID: new(1), BaseModel: "org/fake"}},
		{"POST", "unload_model", tinkerwire.Request{ModelID: of.model}},
		{"POST", "get_info", tinkerwire.Request{ModelID: of.model}},
		{"POST", "session_heartbeat", tinkerwire.Request{SessionID: of.session}},
		{"POST", "create_sampling_session", tinkerwire.Request{
			SessionID: of.session, SamplingSessionSeqID: new(9), BaseModel: "org/fake"}},
		{"POST", "create_sampling_session", tinkerwire.Request{
			SessionID: session, SamplingSessionSeqID: new(0), ModelPath: of.path}},
		{"POST", "asample", tinkerwire.SampleRequest{Prompt: prompt, SessionID: of.sampler}},
		{"POST", "asample", tinkerwire.SampleRequest{Prompt: prompt, ModelPath: of.path}},
		{"POST", "retrieve_future", tinkerwire.Request{RequestID: of.future}},
		{"POST", "weights_info", tinkerwire.Request{TinkerPath: of.path}},
		{"GET", "samplers/" + of.sampler, nil},
		{"GET", "sessions/" + of.session, nil},
		{"GET", run, nil},
		{"GET", run + "/checkpoints", nil},
		{"GET", run + "/checkpoints/weights/a/archive", nil},
		{"GET", run + "/checkpoints/external_weights/a/external_weights_urls", nil},
		{"PUT", run + "/checkpoints/weights/a/ttl", tinkerwire.Request{}},
		{"DELETE", run + "/checkpoints/weights/a", nil},
	}
}

// shared are the routes that name nothing of a tenant's; lists and finish are tried apart.
var shared = map[string]bool{
	"POST client/config": true, "POST client/dynamic_config": true, "POST create_session": true, "POST telemetry": true,
	"GET get_server_capabilities": true, "GET healthz": true, "GET usage": true, "POST sessions/{id}/finish": true,
	"GET training_runs": true, "GET checkpoints": true, "GET sessions": true,
}

// requireEveryRoute fails for a route that was not tried with what is another tenant's.
func requireEveryRoute(t *testing.T, tried iter.Seq2[string, string]) {
	t.Helper()
	left := http.NewServeMux()
	missing := map[string]bool{}
	s, _ := newFake(t, nil)
	for pattern := range s.table() {
		method, path, _ := strings.Cut(pattern, " ")
		full := method + " " + Prefix + path
		left.HandleFunc(full, func(http.ResponseWriter, *http.Request) {})
		missing[full] = !shared[pattern]
	}
	for method, path := range tried {
		r, err := http.NewRequestWithContext(t.Context(), method, Prefix+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, pattern := left.Handler(r)
		delete(missing, pattern)
	}
	for pattern, wanted := range missing {
		if wanted {
			t.Errorf("%s was not tried with what is another tenant's", pattern)
		}
	}
}

// TestTenants_Usage counts tokens and money.
func TestTenants_Usage(t *testing.T) {
	s, _, bob := newTenants(t, Limits{})
	model := bob.model()
	bob.result(bob.ok("forward_backward", backward(model, 1, 1)).RequestID)
	if got := s.Usage()["bob"]; got.TrainedTokens != 1 || got.Cost != 2 {
		t.Errorf("usage is %+v", got)
	}
	if got := s.Usage()["ann"]; got != (access.Usage{}) {
		t.Errorf("usage of another is %+v", got)
	}
}

func TestLimits(t *testing.T) {
	_, ann, _ := newTenants(t, Limits{Sessions: 2, Runs: 1, Futures: 2, Datums: 1, Tokens: 3, Samples: 2})
	model := ann.model()
	ann.ok("create_session", tinkerwire.Request{})
	if status, body := ann.call("POST", "create_session", tinkerwire.Request{}); status != http.StatusForbidden {
		t.Errorf("a third session: status %d: %s", status, body)
	}
	session, _, _ := strings.Cut(model, ":")
	more := tinkerwire.Request{SessionID: session, ModelSeqID: new(1), BaseModel: "org/fake"}
	if status, body := ann.call("POST", "create_model", more); status != http.StatusForbidden {
		t.Errorf("a second run: status %d: %s", status, body)
	}
	two := backward(model, 1, 1)
	two.Data = append(two.Data, two.Data[0])
	if status, body := ann.call("POST", "forward_backward", two); status != http.StatusBadRequest ||
		!strings.Contains(string(body), "more data") {
		t.Errorf("two data: status %d: %s", status, body)
	}
	long := backward(model, 1, 1)
	long.Data[0].Input = tinkerwire.NewInput([]int32{1, 2, 3, 4})
	if body := string(ann.result(ann.ok("forward_backward", long).RequestID)); !strings.Contains(body, "too many tokens") {
		t.Errorf("four tokens: %s", body)
	}
	ann.ok("optim_step", step(model, 4)) // it waits for 3
	ann.ok("optim_step", step(model, 5))
	if status, body := ann.call("POST", "optim_step", step(model, 6)); status != http.StatusTooManyRequests {
		t.Errorf("a third future: status %d: %s", status, body)
	}
	sample := tinkerwire.SampleRequest{Prompt: tinkerwire.NewInput([]int32{1}), BaseModel: "org/fake", NumSamples: 3}
	if status, body := ann.call("POST", "asample", sample); status != http.StatusBadRequest {
		t.Errorf("three samples: status %d: %s", status, body)
	}
}
