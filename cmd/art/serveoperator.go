package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/backend/server/tinker"
)

// operatorVariable is the environment variable of the operator's key.
const operatorVariable = "ART_OPERATOR_KEY"

// chooseOperatorKey sets the key of the operator, and tells whether it is a new one: with tenants there must be one.
func (o *serveOptions) chooseOperatorKey() (generated bool, err error) {
	if o.operatorKey == "" {
		o.operatorKey = os.Getenv(operatorVariable)
	}
	if o.operatorKey == "" && o.tenants != "" {
		o.operatorKey, generated = rand.Text(), true
	}
	if o.operatorKey != "" && o.operatorKey == o.key {
		return false, badUsage("--operator-key is --key: the operator needs another one")
	}
	return generated, nil
}

// checkOperatorKey refuses a key that is a tenant's too: it would read their data.
func (o *serveOptions) checkOperatorKey(tenants []tinker.Tenant) error {
	for _, t := range tenants {
		keys := slices.Clone(t.Keys)
		for _, k := range t.Scoped {
			keys = append(keys, k.Key)
		}
		if slices.Contains(keys, o.operatorKey) {
			return badUsage("--operator-key is a key of the tenant %q: the operator needs another one", t.Name)
		}
		if len(keys) == 0 {
			return fmt.Errorf("--tenants: %q has no keys", t.Name)
		}
	}
	return nil
}

// handleOperator adds the routes of the operator: what all tenants use, and nothing that is theirs. The key of a server
// without tenants reads them too.
func (h *host) handleOperator(mux *http.ServeMux, o *serveOptions, logger *slog.Logger) error {
	own := http.NewServeMux()
	own.Handle("GET /metrics", h.metrics)
	own.HandleFunc("GET /operator/health", h.showHealth)
	own.HandleFunc("GET /operator/usage", h.showUsage)
	opts := o.handlerOptions()
	if o.operatorKey != "" {
		opts.Keys = append(opts.Keys, o.operatorKey)
	}
	guarded, err := server.Guard(own, opts, &server.GuardConfig{Logger: logger})
	if err != nil {
		return fmt.Errorf("--operator-key, --key, --hosts, --origins: %w", err)
	}
	mux.Handle("/metrics", guarded)
	mux.Handle("/operator/", guarded)
	return nil
}

// showHealth serves GET /operator/health.
func (h *host) showHealth(w http.ResponseWriter, _ *http.Request) {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	sendJSON(w, map[string]any{
		"requests": h.gate.Running(), "seconds": int64(time.Since(h.began).Seconds()), "memory_bytes": memory.Sys,
		"goroutines": runtime.NumGoroutine(),
	})
}

// showUsage serves GET /operator/usage: of each tenant, on the routes of Tinker and of W&B Training.
func (h *host) showUsage(w http.ResponseWriter, _ *http.Request) {
	all := map[string]any{}
	if h.tinker != nil {
		all["tinker"] = map[string]any{"usage": h.tinker.Usage(), "held": h.tinker.Held()}
	}
	if h.wandb != nil {
		all["wandb"] = map[string]any{"usage": h.wandb.Usage(), "held": h.wandb.Held()}
	}
	sendJSON(w, all)
}

// sendJSON writes a JSON body.
func sendJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // an error says that the client has gone
}

// limits are the flags that bound what clients send.
type limits struct {
	body, queue, results, metadata, storage size
	requests                                int
}

// apply sets the limits of a handler.
func (l *limits) apply(opts *art.HandlerOptions) {
	opts.MaxBody, opts.MaxRequests = int64(l.body), l.requests
}

// given names the flags of limits that only --train has, if one was given.
func (l *limits) given() string {
	for _, f := range []struct {
		name  string
		value size
	}{
		{"--max-queue", l.queue}, {"--max-results", l.results}, {"--max-metadata", l.metadata},
		{"--max-storage", l.storage},
	} {
		if f.value != 0 {
			return f.name
		}
	}
	return ""
}
