package main

import (
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeTenants writes a file of two tenants.
func writeTenants(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tenants.json")
	list := `[{"name":"ann","keys":["tml-ann"]},{"name":"bob","scoped":[{"name":"ci","key":"tml-bob"}]}]`
	if err := os.WriteFile(path, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestServeTrain_Operator: the operator's key reads what the server and its tenants use, and no tenant's data. Their
// keys read their data, and nothing of the others.
func TestServeTrain_Operator(t *testing.T) {
	t.Setenv(keyVariable, "")
	t.Setenv(operatorVariable, "")
	s := startServer(t, "--train", "tiny", "--dir", t.TempDir(), "--tenants", writeTenants(t))
	operator := firstGroup(t, s.text, `operator's key: (\S+) `)
	if strings.Contains(s.text, "\nkey:") {
		t.Errorf("there is a key that is nobody's: %s", s.text)
	}
	for _, c := range []struct {
		method, path             string
		operator, tenant, nobody int
	}{
		{"GET", "/metrics", 200, 401, 401}, {"GET", "/operator/usage", 200, 401, 401},
		{"GET", "/operator/health", 200, 401, 401}, {"GET", "/health", 200, 200, 200},
		{"GET", "/api/v1/training_runs", 401, 200, 401}, {"GET", "/api/v1/usage", 401, 200, 401},
		{"POST", "/api/v1/create_session", 401, 200, 401}, {"GET", "/v1/preview/usage", 401, 200, 401},
		{"GET", "/v1/models", 401, 200, 401}, {"GET", "/operator/other", 404, 401, 401},
	} {
		for key, want := range map[string]int{operator: c.operator, "tml-ann": c.tenant, "tml-bob": c.tenant, "": c.nobody} {
			r := s.request(t, c.method, c.path, strings.NewReader("{}"))
			r.Header.Set("Authorization", "Bearer "+key)
			if status, body := s.do(t, r); status != want {
				t.Errorf("%s %s with the key %q: status %d, want %d: %s", c.method, c.path, key, status, want, body)
			}
		}
	}
	r := s.request(t, http.MethodGet, "/operator/usage", nil)
	r.Header.Set("Authorization", "Bearer "+operator)
	_, usage := s.do(t, r)
	for _, want := range []string{
		`"ann":{"sessions":1,`, `"bob":{"sessions":1,`, `"stored_bytes":0`, `"prompt_tokens":0`,
	} {
		if !strings.Contains(usage, want) {
			t.Errorf("the usage lacks %s: %s", want, usage)
		}
	}
	s.end(t)
}

// TestServe_OperatorOfOneUser: without tenants the key of the server reads everything, that of the operator metrics.
func TestServe_OperatorOfOneUser(t *testing.T) {
	t.Setenv(operatorVariable, "operator")
	s := startServer(t, "--key", "own", "--max-body", "2KiB", "tiny=../../model/tiny")
	for key, want := range map[string][2]int{"own": {200, 200}, "operator": {200, 401}, "other": {401, 401}} {
		for i, path := range []string{"/metrics", "/v1/models"} {
			r := s.request(t, http.MethodGet, path, nil)
			r.Header.Set("Authorization", "Bearer "+key)
			if status, body := s.do(t, r); status != want[i] {
				t.Errorf("%s with %s: status %d, want %d: %s", path, key, status, want[i], body)
			}
		}
	}
	body := `{"model":"tiny","messages":[{"role":"user","content":"` + strings.Repeat("x", 2048) + `"}]}`
	s.want(t, "POST", "/v1/chat/completions", body, http.StatusRequestEntityTooLarge, "larger than 2048 bytes")
	s.end(t)
}

// TestServe_OperatorRefused: keys that would be two things, and flags that would do nothing.
func TestServe_OperatorRefused(t *testing.T) {
	t.Setenv(operatorVariable, "")
	tenants := writeTenants(t)
	for want, c := range map[string]struct {
		key  string // in the environment
		args string
	}{
		"--operator-key is --key":             {"", "--key k --operator-key k tiny"},
		`a key of the tenant "bob"`:           {"", "--train tiny --operator-key tml-bob --tenants " + tenants},
		"the keys of clients are in the file": {"", "--train tiny --key k --tenants " + tenants},
		"unset $ART_KEY":                      {"k", "--train tiny --tenants " + tenants},
		"--tenants is for --train":            {"", "--key k --tenants " + tenants + " tiny"},
		"--max-queue is for --train":          {"", "--key k --max-queue 1GiB tiny"},
		"--max-storage is for --train":        {"", "--key k --max-storage 1GiB tiny"},
		"QueuedBytes is 1024":                 {"", "--train tiny --key k --max-queue 1KiB"},
		"want bytes, such as":                 {"", "--train tiny --key k --max-queue 1GB"},
	} {
		t.Setenv(keyVariable, c.key)
		o := &serveOptions{}
		flags := flag.NewFlagSet("serve", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		o.flags(flags)
		defineRunsDir(flags)
		args := append([]string{"--addr", "127.0.0.1:0", "--dir", t.TempDir()}, strings.Fields(c.args)...)
		rest, err := parse(flags, args)
		if err == nil {
			err = o.serve(t.Context(), rest, io.Discard, io.Discard)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", c.args, err, want)
		}
	}
}
