package tinker

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// scopesOf are the scopes of every route, as docs/tinker.md has them; "" is for every key.
var scopesOf = map[string]string{
	"POST client/config": "", "POST client/dynamic_config": "", "POST create_session": "", "POST session_heartbeat": "",
	"POST sessions/{id}/finish": "", "POST telemetry": "", "GET get_server_capabilities": "", "GET healthz": "",
	"POST retrieve_future": "", "GET usage": "",

	"POST create_sampling_session": "sample", "GET samplers/{id}": "sample", "POST asample": "sample",

	"POST create_model": "train", "POST forward": "train", "POST forward_backward": "train", "POST optim_step": "train",
	"POST save_weights": "train", "POST save_weights_for_sampler": "train", "POST save_weights_external": "train",
	"POST load_weights": "train", "POST get_info": "train", "POST unload_model": "train",
	"POST weights_info": "train list",

	"GET training_runs": "list", "GET training_runs/{id}": "list", "GET training_runs/{id}/checkpoints": "list",
	"GET checkpoints": "list", "GET sessions": "list", "GET sessions/{id}": "list",

	"GET training_runs/{id}/checkpoints/{kind}/{name}/archive":               "download",
	"GET training_runs/{id}/checkpoints/{kind}/{name}/external_weights_urls": "download",
	"DELETE training_runs/{id}/checkpoints/{kind}/{name}":                    "delete",
	"PUT training_runs/{id}/checkpoints/{kind}/{name}/ttl":                   "delete",
}

// newScoped serves a tenant with keys of each scope, a key of its first run, and one of the project games.
func newScoped(t *testing.T) (*Server, func(key string) *caller) {
	t.Helper()
	keys := []access.Key{
		{Name: "run", Key: "tml-run", Runs: []string{"s-1:train:0"}},
		{Name: "project", Key: "tml-project", Projects: []string{"games"}},
	}
	for _, scope := range []access.Scope{access.Sample, access.Train, access.List, access.Download, access.Delete} {
		keys = append(keys, access.Key{
			Name: string(scope), Key: "tml-" + string(scope), Scopes: []access.Scope{scope},
		})
	}
	s, h := newFake(t, &Options{
		Dir: t.TempDir(), Bases: []Base{{Name: "org/fake", Model: "tiny"}}, noSync: true,
		Tenants: []Tenant{{Name: "ann", Scoped: keys, Prices: access.Prices{Trained: 2e6}}},
	})
	return s, func(key string) *caller { return &caller{t, h, "tml-" + key} }
}

// TestScopes tries every route with a key of each scope.
func TestScopes(t *testing.T) {
	s, by := newScoped(t)
	for pattern := range s.table() {
		want, known := scopesOf[pattern]
		if !known {
			t.Errorf("%s has no scopes in this test", pattern)
		}
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("{id}", "x", "{kind}", "weights", "{name}", "a").Replace(path)
		for _, scope := range strings.Fields("sample train list download delete") {
			status, body := by(scope).call(method, path, tinkerwire.Request{})
			allowed := want == "" || strings.Contains(want, scope)
			if (status == http.StatusForbidden) == allowed {
				t.Errorf("%s with the scope %s: status %d: %s", pattern, scope, status, body)
			}
			if text := string(body); !allowed && (!strings.Contains(text, pattern+" needs") || strings.Contains(text, "tml-")) {
				t.Errorf("%s with the scope %s: %s", pattern, scope, text)
			}
		}
	}
}

// TestScopes_OtherRuns tries every route for a run that a key does not cover, though its tenant's.
func TestScopes_OtherRuns(t *testing.T) {
	_, by := newScoped(t)
	own, other := by("secret").everything(), by("secret").everything()
	for _, name := range []string{"run", "project"} {
		key := by(name)
		for _, try := range other.tries(key.session()) {
			if status, body := key.call(try.method, try.path, try.body); status != http.StatusForbidden {
				t.Errorf("key %s: %s %s: status %d: %s", name, try.method, try.path, status, body)
			}
		}
		for _, try := range []try{
			{"POST", "sessions/" + other.session + "/finish", tinkerwire.Request{}},
			{"POST", "asample", tinkerwire.SampleRequest{Prompt: tinkerwire.NewInput([]int32{1}), BaseModel: "org/fake"}},
			{"POST", "create_session", tinkerwire.Request{ProjectID: "other"}},
		} {
			if status, body := key.call(try.method, try.path, try.body); status != http.StatusForbidden {
				t.Errorf("key %s: %s %s: status %d: %s", name, try.method, try.path, status, body)
			}
		}
		for _, list := range []string{"training_runs", "checkpoints", "sessions"} {
			if _, body := key.call("GET", list, nil); strings.Contains(string(body), other.session) {
				t.Errorf("key %s: %s shows another run: %s", name, list, body)
			}
		}
	}
	by("run").await("optim_step", step(own.model, 4)) // its own
	by("run").result(own.future)
	if _, body := by("run").call("GET", "training_runs", nil); !strings.Contains(string(body), own.model) {
		t.Errorf("its own run is not listed: %s", body)
	}
	fresh := by("run").session()
	if status, body := by("run").call("POST", "create_model", tinkerwire.Request{
		SessionID: fresh, ModelSeqID: new(0), BaseModel: "org/fake",
	}); status != http.StatusForbidden {
		t.Errorf("a new run: status %d: %s", status, body)
	}
	by("secret").await("optim_step", step(other.model, 4)) // nothing has happened to it
}

// TestScopes_Project: what a key of a project makes is in the project, which another key of it goes on with.
func TestScopes_Project(t *testing.T) {
	s, by := newScoped(t)
	by("secret").model() // it is that of the key run
	of := by("project").everything()
	if status, _ := by("run").call("POST", "get_info", tinkerwire.Request{ModelID: of.model}); status != 403 {
		t.Errorf("another key: status %d", status)
	}
	by("project").await("optim_step", step(of.model, 4))
	rec, err := s.findRecord(s.tenants[0].all(), of.model)
	if err != nil || rec.Project != "games" || rec.Key != "project" {
		t.Errorf("%+v, error %v", rec, err)
	}
}

// TestScopes_Usage: what each key has used is counted, shown to it alone, and known after a restart.
func TestScopes_Usage(t *testing.T) {
	s, by := newScoped(t)
	model := by("train").model()
	by("train").result(by("train").ok("forward_backward", backward(model, 1, 1)).RequestID)
	by("sample").result(by("sample").ok("asample", tinkerwire.SampleRequest{
		Prompt: tinkerwire.NewInput([]int32{1, 2}), BaseModel: "org/fake",
		Params: tinkerwire.SamplingParams{MaxTokens: new(1)},
	}).RequestID)
	for key, want := range map[string]access.Usage{
		"train": {TrainedTokens: 1, Cost: 2}, "sample": {PromptTokens: 2, SampledTokens: 1}, "list": {},
	} {
		var got access.Report
		_, body := by(key).call("GET", "usage", nil)
		err := json.Unmarshal(body, &got)
		got.Seconds = 0
		if err != nil || got.Usage != want || got.Keys != nil {
			t.Errorf("key %s: %s, want %+v", key, body, want)
		}
	}
	var all access.Report
	_, body := by("secret").call("GET", "usage", nil)
	err := json.Unmarshal(body, &all)
	if err != nil || all.TrainedTokens != 1 || all.PromptTokens != 2 || len(all.Keys) != 2 {
		t.Errorf("all keys: %s", body)
	}
	if err := s.store.WriteJSON(s.users.Usage(), usageFile); err != nil {
		t.Fatal(err)
	}
	var stored map[string]access.Report
	if tenancy.ReadJSON(s.store, &stored, usageFile); stored["ann"].Keys["train"].TrainedTokens != 1 {
		t.Errorf("stored %+v", stored)
	}
}
