package wandb_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/backend/server/wandb"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// counting is a backend whose trainings tell how many tokens they read.
type counting struct{ *arttest.Backend }

// Train implements [art.Backend].
func (b counting) Train(
	ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig,
) (*art.TrainResult, error) {
	result, err := b.Backend.Train(ctx, m, groups, cfg)
	if err == nil {
		result.Metrics["data/tokens_trained"] = 7
	}
	return result, err
}

// serveScoped serves a tenant with a key of each scope, one of the run games/player and one of the project other.
func serveScoped(t *testing.T, dir string) func(key string) *client {
	t.Helper()
	keys := []access.Key{
		{Name: "run", Key: "run", Runs: []string{"games/player"}},
		{Name: "project", Key: "project", Projects: []string{"other"}},
	}
	for _, scope := range []access.Scope{access.Sample, access.Train, access.List, access.Download, access.Delete} {
		keys = append(keys, access.Key{Name: string(scope), Key: string(scope), Scopes: []access.Scope{scope}})
	}
	s, err := wandb.New(counting{&arttest.Backend{}}, &wandb.Options{
		Dir: dir, Bases: []wandb.Base{{Name: "tiny"}},
		Tenants: []wandb.Tenant{{Name: "one", Keys: []string{"a"}, Scoped: keys, Prices: access.Prices{Trained: 1e6}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Handler(nil)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		web.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(key string) *client { return &client{web.URL, key} }
}

// scoped is a request and the scopes that allow it.
type scoped struct{ method, path, body, scopes string }

// requests reach for a model by every route. Those of training come before those that delete.
func (c *client) requests(t *testing.T, project, name, model, job string) []scoped {
	t.Helper()
	artifact := "wandb-artifact:///one/" + project + "/" + name
	text := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hi"}],"max_tokens":2}`, artifact)
	ids := fmt.Sprintf(`{"model":%q,"prompt":[1],"max_tokens":2,"token_ids":[1],"sampling_params":{},"tokens":[1]}`,
		artifact)
	return []scoped{
		{"POST", "/v1/chat/completions", text, "sample"}, {"POST", "/v1/messages", text, "sample"},
		{"POST", "/v1/messages/count_tokens", text, "sample"}, {"POST", "/tokenize", text, "sample"},
		{"POST", "/v1/completions", ids, "sample"}, {"POST", "/inference/v1/generate", ids, "sample"},
		{"POST", "/detokenize", ids, "sample"},
		{"POST", "/v1/responses", fmt.Sprintf(`{"model":%q,"input":"hi"}`, artifact), "sample"},
		{"POST", "/v1/preview/models", fmt.Sprintf(
			`{"project":%q,"name":%q,"base_model":"tiny","return_existing":true}`, project, name), "train"},
		{"POST", "/v1/preview/models/" + model + "/log", `{"split":"val","trajectory_groups":[]}`, "train"},
		{"POST", "/v1/preview/training-jobs", fmt.Sprintf(`{"model_id":%q,"trajectory_groups":[]}`, model), "train"},
		{"POST", "/v1/preview/sft-training-jobs", fmt.Sprintf(
			`{"model_id":%q,"training_data_url":"wandb-artifact:///one/%s/d:v0"}`, model, project), "train"},
		{"PUT", "/v1/preview/artifacts/" + project + "/d", `{}`, "train"},
		{"DELETE", "/v1/preview/artifacts/" + project + "/d", "", "delete"},
		{"GET", "/v1/preview/models/" + model + "/checkpoints", "", "train list"},
		{"GET", "/v1/preview/training-jobs/" + job + "/events", "", "train list"},
		{"DELETE", "/v1/preview/models/" + model + "/checkpoints", `{"steps":[]}`, "delete"},
		{"DELETE", "/v1/preview/models/" + model, "", "delete"},
	}
}

// requireEveryRoute fails for a route of training that no request is for.
func requireEveryRoute(t *testing.T, requests []scoped) {
	t.Helper()
	s, err := wandb.New(&arttest.Backend{}, &wandb.Options{Dir: t.TempDir(), Bases: []wandb.Base{{Name: "tiny"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	routes := http.NewServeMux()
	missing := map[string]bool{}
	for _, pattern := range s.Patterns() {
		method, path, _ := strings.Cut(pattern, " ")
		full := method + " " + wandb.Prefix + path
		missing[full] = path != "usage" // which is for every key, and tried apart
		routes.HandleFunc(full, func(http.ResponseWriter, *http.Request) {})
	}
	for _, request := range requests {
		r := httptest.NewRequest(request.method, request.path, nil)
		_, pattern := routes.Handler(r)
		delete(missing, pattern)
	}
	for pattern, is := range missing {
		if is {
			t.Errorf("%s was not tried", pattern)
		}
	}
}

// TestScopes tries every route with a key of each scope.
func TestScopes(t *testing.T) {
	by := serveScoped(t, t.TempDir())
	all := by("a")
	m := all.register(t)
	job := all.start(t, all.job(t, m, "{}"))
	all.events(t, job)
	requests := all.requests(t, "games", "player", m.ID, job)
	requireEveryRoute(t, requests)
	for _, scope := range strings.Fields("sample train list download delete") {
		for _, r := range requests {
			status, text := by(scope).do(t, r.method, r.path, r.body, nil)
			allowed := slices.Contains(strings.Fields(r.scopes), scope)
			if (status == http.StatusForbidden) == allowed || !allowed && !strings.Contains(text, "needs") {
				t.Errorf("%s %s with the scope %s: status %d: %s", r.method, r.path, scope, status, text)
			}
		}
	}
}

// TestScopes_OtherRuns tries every route for a run that a key does not cover, though its tenant's.
func TestScopes_OtherRuns(t *testing.T) {
	by := serveScoped(t, t.TempDir())
	all := by("a")
	m := all.register(t)
	job := all.start(t, all.job(t, m, "{}"))
	all.events(t, job)
	for _, r := range all.requests(t, "games", "player", m.ID, job) {
		if status, text := by("project").do(t, r.method, r.path, r.body, nil); status != http.StatusForbidden {
			t.Errorf("%s %s: status %d: %s", r.method, r.path, status, text)
		}
	}
	for key, model := range map[string]string{"run": "tiny", "project": "tiny"} {
		if status, _ := by(key).ask(t, model); status != http.StatusForbidden {
			t.Errorf("key %s: the base model answers with status %d", key, status)
		}
	}
	if status, _ := by("run").ask(t, "wandb-artifact:///one/games/player"); status != http.StatusOK {
		t.Errorf("its own model answers with status %d", status)
	}
	by("run").events(t, job)
	second := `{"project":"games","name":"second","base_model":"tiny"}`
	if status, text := by("run").do(t, "POST", "/v1/preview/models", second, nil); status != http.StatusForbidden {
		t.Errorf("another model: status %d: %s", status, text)
	}
	var made struct{ Project string }
	unnamed := `{"name":"second","base_model":"tiny"}`
	if by("project").do(t, "POST", "/v1/preview/models", unnamed, &made); made.Project != "other" {
		t.Errorf("a model without a project is in %q", made.Project)
	}
}

// TestUsage: what each key has used is counted, shown to it alone, and known after a restart.
func TestUsage(t *testing.T) {
	dir := t.TempDir()
	var before access.Report
	t.Run("counted", func(t *testing.T) {
		by := serveScoped(t, dir)
		m := by("a").register(t)
		body := by("a").job(t, m, "{}") // it asks once
		by("train").events(t, by("train").start(t, body))
		if status, _ := by("sample").ask(t, "wandb-artifact:///one/games/player"); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
		var trained, sampled, none access.Report
		by("train").do(t, "GET", "/v1/preview/usage", nil, &trained)
		by("sample").do(t, "GET", "/v1/preview/usage", nil, &sampled)
		by("list").do(t, "GET", "/v1/preview/usage", nil, &none)
		by("a").do(t, "GET", "/v1/preview/usage", nil, &before)
		if trained.TrainedTokens != 7 || trained.Cost != 7 || trained.SampledTokens != 0 || trained.Seconds <= 0 {
			t.Errorf("key train: %+v", trained)
		}
		if sampled.PromptTokens <= 0 || sampled.SampledTokens <= 0 || sampled.TrainedTokens != 0 || sampled.Keys != nil {
			t.Errorf("key sample: %+v", sampled)
		}
		if none.Usage != (access.Usage{}) {
			t.Errorf("key list: %+v", none)
		}
		if before.PromptTokens != 2*sampled.PromptTokens || before.Keys["sample"] != sampled.Usage || len(before.Keys) != 2 {
			t.Errorf("all keys: %+v", before)
		}
	})
	t.Run("restarted", func(t *testing.T) {
		var after access.Report
		serveScoped(t, dir)("a").do(t, "GET", "/v1/preview/usage", nil, &after)
		if after.Usage != before.Usage || after.Keys["train"] != before.Keys["train"] {
			t.Errorf("%+v, want %+v", after, before)
		}
	})
}
