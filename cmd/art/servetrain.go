package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/backend/server/tinker"
	"github.com/goart-dev/art/backend/server/wandb"
	"github.com/goart-dev/art/backend/track/prometheus"
	"github.com/goart-dev/art/internal/runs"
)

// trainable reads the bases of --train: [NAME=]MODEL with commas.
func (o *serveOptions) trainable() (bases []tinker.Base, err error) {
	for _, item := range splitList(o.train) {
		name, model, named := strings.Cut(item, "=")
		if !named {
			model = name
		}
		s, err := find(model)
		if err != nil {
			return nil, fmt.Errorf("--train: %w", err)
		}
		if s.adapter != "" {
			return nil, badUsage("--train %s: want a base model; clients load adapters themselves", item)
		}
		bases = append(bases, tinker.Base{Name: name, Model: s.path, Tokenizer: o.tokenizer})
	}
	return bases, nil
}

// tenantList reads the file of --tenants; without one there is one tenant, with the key of the server.
func (o *serveOptions) tenantList() (list []tinker.Tenant, err error) {
	if o.tenants == "" {
		return nil, nil
	}
	data, err := os.ReadFile(o.tenants)
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s lists no tenants", o.tenants)
	}
	if err != nil {
		return nil, fmt.Errorf("--tenants: %w", err)
	}
	return list, nil
}

// savedFolder is the folder of saved weights.
func (o *serveOptions) savedFolder(path string) (string, error) {
	ref, err := runs.ParseReference(path, "")
	if err != nil {
		return "", err
	}
	reader, err := runs.NewReader(ref.Dir(o.root))
	if err != nil {
		return "", err
	}
	return reader.Find(ref.Step)
}

// runSize is what a run has on disk.
func (o *serveOptions) runSize(project, run string) (n int64, err error) {
	dir := runs.Reference{Project: project, Name: run}.Dir(o.root)
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // it was replaced meanwhile
			return nil
		}
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

// openTinker makes the routes of the Tinker API, and those of W&B Training beside it.
func (h *host) openTinker(o *serveOptions, logger *slog.Logger) (http.Handler, error) {
	backend, ok := any(h.backend).(tinker.Backend)
	if !ok {
		return nil, fmt.Errorf("--train: %T has no primitives of training yet", h.backend)
	}
	bases, err := o.trainable()
	if err != nil {
		return nil, err
	}
	tenants, err := o.tenantList()
	if err != nil {
		return nil, err
	}
	for _, t := range tenants {
		keys := slices.Clone(t.Keys)
		for _, k := range t.Scoped {
			keys = append(keys, k.Key)
		}
		if slices.Contains(keys, o.operatorKey) { // it would read their data
			return nil, badUsage("--operator-key is a key of the tenant %q: the operator needs another one", t.Name)
		}
		if len(keys) == 0 {
			return nil, fmt.Errorf("--tenants: %q has no keys", t.Name)
		}
	}
	h.tinker, err = tinker.New(backend, &tinker.Options{
		Dir: filepath.Join(o.root, ".tinker"), Bases: bases, Tenants: tenants, Alpha: o.alpha, Slots: o.Slots, Logger: logger,
		Folder: o.savedFolder, MaxBody: int64(o.limits.body), Limits: tinker.Limits{
			QueuedBytes: int64(o.limits.queue), ResultBytes: int64(o.limits.results),
			MetadataBytes: int64(o.limits.metadata), StoredBytes: int64(o.limits.storage),
		},
	})
	if err != nil {
		return nil, err
	}
	h.closers = append(h.closers, h.tinker.Close)
	for _, b := range bases {
		h.bases = append(h.bases, b.Name)
	}
	opts := o.handlerOptions()
	routes, err := h.tinker.Handler(opts)
	if err != nil {
		return nil, fmt.Errorf("--key, --hosts, --origins: %w", err)
	}
	rest, err := h.openWandb(o, bases, tenants, logger)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(tinker.Prefix, routes)
	mux.Handle("/", rest)
	return mux, nil
}

// openWandb makes the routes of W&B Training, with the same bases and tenants.
func (h *host) openWandb(
	o *serveOptions, bases []tinker.Base, tenants []tinker.Tenant, logger *slog.Logger,
) (http.Handler, error) {
	watch := prometheus.New(nil)
	if err := h.metrics.Registry().Register(watch); err != nil {
		return nil, err
	}
	opts := &wandb.Options{
		Dir: filepath.Join(o.root, ".wandb-training"), Logger: logger, Events: watch.Events(), Size: o.runSize,
		MaxBody: int64(o.limits.body),
		Limits:  wandb.Limits{QueuedBytes: int64(o.limits.queue), StoredBytes: int64(o.limits.storage)},
	}
	for _, b := range bases {
		opts.Bases = append(opts.Bases, wandb.Base{Name: b.Name, Model: b.Model})
	}
	for _, t := range tenants {
		of := wandb.Tenant{Name: t.Name, Keys: t.Keys, Scoped: t.Scoped, Prices: t.Prices}
		if l := t.Limits; l != nil {
			of.Limits = &wandb.Limits{Models: l.Runs, QueuedBytes: l.QueuedBytes, StoredBytes: l.StoredBytes}
		}
		opts.Tenants = append(opts.Tenants, of)
	}
	var err error
	if h.wandb, err = wandb.New(h.backend, opts); err != nil {
		return nil, err
	}
	h.closers = append(h.closers, h.wandb.Close)
	return h.wandb.Handler(o.handlerOptions())
}

// operatorVariable is the environment variable of the operator's key.
const operatorVariable = "ART_OPERATOR_KEY"

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

// given names the flags of limits that only --train has, if one was given.
func (l *limits) given() string {
	switch {
	case l.queue != 0:
		return "--max-queue"
	case l.results != 0:
		return "--max-results"
	case l.metadata != 0:
		return "--max-metadata"
	case l.storage != 0:
		return "--max-storage"
	}
	return ""
}

// size is a flag of bytes: 64MiB, 20GiB, 1048576. 0 is a default.
type size int64

// units are those of a size, the larger ones first.
var units = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

// String implements [flag.Value].
func (s *size) String() string {
	for _, u := range units {
		if n := int64(*s); n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return ""
}

// Set implements [flag.Value].
func (s *size) Set(text string) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n <= 0 || n > math.MaxInt64/u.bytes {
			break
		}
		*s = size(n * u.bytes)
		return nil
	}
	return fmt.Errorf("want bytes, such as 1048576, 64MiB or 20GiB")
}
