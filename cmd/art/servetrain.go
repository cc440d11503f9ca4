package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/goart-dev/art/backend/server/access"
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
	reader, err := runs.NewReader(ref.Dir(o.dir))
	if err != nil {
		return "", err
	}
	return reader.Find(ref.Step)
}

// runSize is what a run has on disk.
func (o *serveOptions) runSize(project, run string) (n int64, err error) {
	dir := runs.Reference{Project: project, Name: run}.Dir(o.dir)
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
	if err := o.checkOperatorKey(tenants); err != nil {
		return nil, err
	}
	h.tinker, err = tinker.New(backend, &tinker.Options{
		Dir: filepath.Join(o.dir, ".tinker"), Bases: bases, Tenants: tenants, Alpha: o.alpha, Slots: o.slots, Logger: logger,
		Folder: o.savedFolder, MaxBody: int64(o.limits.body), Limits: tinker.Limits{
			QueuedBytes: int64(o.limits.queue), ResultBytes: int64(o.limits.results),
			MetadataBytes: int64(o.limits.metadata), StoredBytes: int64(o.limits.storage),
		},
	})
	if err != nil {
		return nil, err
	}
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
		Dir: filepath.Join(o.dir, ".wandb-training"), Logger: logger, Events: watch.Events(), Size: o.runSize,
		MaxBody: int64(o.limits.body),
		Limits:  wandb.Limits{QueuedBytes: int64(o.limits.queue), StoredBytes: int64(o.limits.storage)},
	}
	for _, b := range bases {
		opts.Bases = append(opts.Bases, wandb.Base{Name: b.Name, Model: b.Model})
	}
	for _, t := range tenants {
		of := wandb.Tenant{Name: t.Name, Keys: t.Keys, Scoped: t.Scoped}
		if l := t.Limits; l != nil {
			of.Limits = &wandb.Limits{Models: l.Runs, QueuedBytes: l.QueuedBytes, StoredBytes: l.StoredBytes}
		}
		if t.Prices != nil {
			of.Prices = access.Prices(*t.Prices)
		}
		opts.Tenants = append(opts.Tenants, of)
	}
	var err error
	if h.wandb, err = wandb.New(h.backend, opts); err != nil {
		return nil, err
	}
	return h.wandb.Handler(o.handlerOptions())
}
