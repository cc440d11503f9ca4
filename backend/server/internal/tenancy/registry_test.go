package tenancy_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
)

func newRegistry(t *testing.T) *tenancy.Registry {
	t.Helper()
	l, err := tenancy.NewRegistry([]tenancy.Tenant{
		{Name: "ann", Keys: []string{"ann"}, Prices: access.Prices{Trained: 2e6}, Scoped: []access.Key{
			{Name: "ci", Key: "ann-ci", Scopes: []access.Scope{access.Sample}},
			{Name: "games", Key: "ann-games", Projects: []string{"games"}, Runs: []string{"other/player"}},
		}},
		{Name: "bob", Keys: []string{"bob"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// caller sends a key in a header.
func caller(l *tenancy.Registry, header, value string) *tenancy.Caller {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set(header, value)
	return l.Caller(r)
}

func TestRegistry_Caller(t *testing.T) {
	l := newRegistry(t)
	for _, c := range []struct{ header, value, tenant, key string }{
		{"Authorization", "Bearer ann", "ann", ""}, {"authorization", "bearer  ann-ci", "ann", "ci"},
		{"X-Api-Key", "ann-games", "ann", "games"}, {"X-API-Key", "bob", "bob", ""},
	} {
		got := caller(l, c.header, c.value)
		if got == nil || got.Tenant != c.tenant || got.Key() != c.key || got.Limited() != (c.key != "") {
			t.Errorf("%s %s is %+v", c.header, c.value, got)
		}
	}
	for _, value := range []string{"", "ann", "Basic ann", "Bearer other"} {
		if got := caller(l, "Authorization", value); got != nil {
			t.Errorf("%q is %+v", value, got)
		}
	}
	l.Admit([]string{"new"})
	if got := caller(l, "X-Api-Key", "new"); got == nil || got.Tenant != "ann" {
		t.Errorf("an admitted key is %+v", got)
	}
	open, err := tenancy.NewRegistry([]tenancy.Tenant{{Name: "default"}})
	if err != nil || caller(open, "X-Api-Key", "").Tenant != "default" {
		t.Errorf("without keys, error %v", err)
	}
}

func TestCaller_Limits(t *testing.T) {
	l := newRegistry(t)
	ci, games, all := caller(l, "X-Api-Key", "ann-ci"), caller(l, "X-Api-Key", "ann-games"), tenancy.Unlimited("ann")
	for name, c := range map[string]struct {
		err  error
		want string // "" if allowed
	}{
		"no limits":        {all.Needs("POST x", access.Train), ""},
		"no limits, run":   {all.Reaches("p", "r"), ""},
		"no limits, base":  {all.ReachesBase("tiny"), ""},
		"scope":            {ci.Needs("POST x", access.Train, access.Sample), ""},
		"no scope needed":  {ci.Needs("POST x"), ""},
		"another scope":    {ci.Needs("POST x", access.Train, access.List), `POST x needs "train" or "list"`},
		"scope, any run":   {ci.Reaches("p", "r"), ""},
		"scope, base":      {ci.ReachesBase("tiny"), ""},
		"runs, any scope":  {games.Needs("POST x", access.Delete), ""},
		"project":          {games.Reaches("games", "games/new"), ""},
		"run":              {games.Reaches("other", "other/player"), ""},
		"other run":        {games.Reaches("other", "other/second"), `"other/second" is not among them`},
		"new run":          {games.Reaches("other", ""), `the projects ["games"] and the runs ["other/player"]`},
		"run of no name":   {games.Reaches("", ""), "is not among them"},
		"project of a run": {games.ReachesProject("other"), ""},
		"other project":    {games.ReachesProject("oth"), `the project "oth" is not among them`},
		"base":             {games.ReachesBase("tiny"), `the base model "tiny" is not among them`},
	} {
		t.Run(name, func(t *testing.T) {
			var denied *tenancy.DeniedError
			switch {
			case c.want == "" && c.err != nil:
				t.Error(c.err)
			case c.want != "" && (!errors.As(c.err, &denied) || !strings.Contains(c.err.Error(), c.want)):
				t.Errorf("error %v, want %s", c.err, c.want)
			case c.err != nil && strings.Contains(c.err.Error(), "ann-"):
				t.Errorf("the secret is in %v", c.err)
			}
		})
	}
	if games.Project() != "games" || ci.Project() != "" || all.Project() != "" {
		t.Error("the project of a key")
	}
}

func TestRegistry_Usage(t *testing.T) {
	l := newRegistry(t)
	l.Charge("ann", "", access.Usage{TrainedTokens: 1, Seconds: 2})
	l.Charge("ann", "ci", access.Usage{PromptTokens: 3, SampledTokens: 4})
	l.Charge("nobody", "", access.Usage{PromptTokens: 9})
	want := access.Usage{PromptTokens: 3, SampledTokens: 4, TrainedTokens: 1, Seconds: 2, Cost: 2}
	for range 2 { // after a restart too
		all := l.Usage()
		if got := all["ann"]; got.Usage != want || got.Keys["ci"] != (access.Usage{PromptTokens: 3, SampledTokens: 4}) {
			t.Errorf("usage %+v", got)
		}
		if got := all["bob"]; got.Usage != (access.Usage{}) || len(all) != 2 {
			t.Errorf("usage of another %+v", got)
		}
		l = newRegistry(t)
		l.Restore(all)
	}
}

// TestNewRegistry_Invalid: all problems are listed, and no secret.
func TestNewRegistry_Invalid(t *testing.T) {
	_, err := tenancy.NewRegistry([]tenancy.Tenant{
		{Name: "ann", Keys: []string{"secret"}, Scoped: []access.Key{
			{Name: "a", Key: "secret"}, {Name: "a", Key: "secret-2", Scopes: []access.Scope{"write"}}, {Name: "b"},
		}},
		{Name: "bob", Keys: []string{"secret-2"}},
	})
	for _, want := range []string{
		`name "a", which is empty or taken`, `the scope "write"; there are ["sample"`, `"b" of "ann" is empty`,
		`a key of "ann" is a key of "ann" too`, `a key of "bob" is a key of "ann" too`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
