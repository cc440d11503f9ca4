// Package wandb serves the routes of W&B Training over any backend: programs that train with openpipe-art's
// ServerlessBackend do so on ours, when base_url names this server. docs/wandb-training.md lists routes and limits.
//
//	s, err := wandb.New(backend, &wandb.Options{Dir: ".art/wandb", Bases: []wandb.Base{{Name: "tiny"}}})
//	handler, err := s.Handler(&art.HandlerOptions{Keys: []string{"secret"}})
//
// A model is an [art.Model] with a run directory like any other, and answers as wandb-artifact:///ENTITY/PROJECT/NAME,
// or with :stepN behind it. The entity is the tenant. A training is on disk before it is acknowledged: a server that
// stops goes on with it when another is made with the same folder, and no training is applied twice.
package wandb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
	"github.com/goart-dev/art/internal/stable"
)

// Options configure a [Server].
type Options struct {
	// Dir is the folder of the server's own state: the index of models, trainings and data sets. It must be of this
	// server alone. Required.
	Dir string
	// Bases are the base models that clients may name. At least one.
	Bases []Base
	// Tenants are the users, with keys of their own: none sees what is another's. Without tenants there is one, "default",
	// with the keys of the handler.
	Tenants []Tenant
	// Limits bound each tenant that has none of its own.
	Limits Limits
	// MaxBody bounds the body of a request, in bytes. Default 64 MiB.
	MaxBody int64
	// Size returns the bytes on disk of a run, by its project and name: checkpoints and what was logged. They count
	// against [Limits].StoredBytes. nil: only data sets count.
	Size func(project, run string) (int64, error)
	// Events are told of the trainings of all tenants. nil tells nobody.
	Events *art.Events
	// Logger receives internal errors. nil discards them.
	Logger *slog.Logger

	disk stable.Disk // tests inject faults
}

// Base is a base model.
type Base struct {
	// Name is what clients call it.
	Name string
	// Model is what the backend calls it: [art.ModelOptions].Base. Default Name.
	Model string
}

// Tenant is a user of the server.
type Tenant struct {
	// Name is the entity of the tenant's models. With several tenants, the folder of a project is ENTITY.PROJECT.
	Name string
	// Keys are the secrets that clients send. The W&B SDK wants 40 characters.
	Keys []string
	// Scoped are further ones, with limits: scopes, projects, and runs PROJECT/NAME. docs/wandb-training.md lists the
	// scopes of the routes.
	Scoped []access.Key
	// Limits replace those of the server. nil: the same.
	Limits *Limits
	// Prices make money of what the tenant uses. Zero: none.
	Prices access.Prices
}

// Server serves W&B Training. Make one with [New].
type Server struct {
	opts    Options
	backend art.Backend
	log     *slog.Logger
	users   *tenancy.Registry
	store   *tenancy.Folder

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	wake   chan struct{}

	tenants map[string]*tenant // by their names
	loading tenancy.Locks      // by base: held while a base model is registered
	putting tenancy.Locks      // by tenant: held while a data set is stored or deleted

	mu     sync.Mutex            // held for moments only, never while something is read, written or computed
	bases  map[string]*art.Model // frozen, by name
	models map[string]*model
	jobs   map[string]*job
	queue  []*job
	served string // the tenant whose training began last
}

// New makes a server over a backend, and goes on with what another process has left in opts.Dir. The backend stays the
// caller's, who closes it after the server.
func New(backend art.Backend, opts *Options) (*Server, error) {
	if opts == nil {
		opts = &Options{}
	}
	s := &Server{
		opts: *opts, backend: backend, models: map[string]*model{},
		bases: map[string]*art.Model{}, jobs: map[string]*job{}, wake: make(chan struct{}, 1), log: opts.Logger,
		tenants: map[string]*tenant{},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.opts.MaxBody = cmp.Or(s.opts.MaxBody, 64<<20)
	if len(s.opts.Tenants) == 0 {
		s.opts.Tenants = []Tenant{{Name: "default"}}
	}
	if err := s.opts.validate(); err != nil {
		return nil, &art.Error{Op: "serve W&B Training", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err),
			Hint: "correct the Options"}
	}
	s.users, _ = s.opts.registry() // validated
	for i := range s.opts.Tenants {
		s.tenants[s.opts.Tenants[i].Name] = newTenant(&s.opts.Tenants[i], s.opts.Limits)
	}
	switch err := s.openStore(); {
	case errors.Is(err, art.ErrLocked):
		return nil, err // it says what to do
	case err != nil:
		return nil, &art.Error{Op: "serve W&B Training", Err: err, Hint: "check the folder " + opts.Dir}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.work.Go(s.train)
	s.work.Go(s.keepUsage)
	return s, nil
}

func (o *Options) validate() error {
	var p []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			p = append(p, fmt.Errorf(format, args...))
		}
	}
	check(o.Dir != "", "Dir is empty")
	check(len(o.Bases) > 0, "there are no Bases")
	check(o.MaxBody > 0, "MaxBody is negative")
	bases, tenants := map[string]bool{}, map[string]bool{}
	for i, b := range o.Bases {
		check(b.Name != "" && !bases[b.Name], "Bases[%d] has the name %q, which is empty or taken", i, b.Name)
		bases[b.Name] = true
	}
	for i, t := range o.Tenants {
		bad := strings.ContainsAny(t.Name, ". ") // a dot comes before the project
		check(!bad && !tenants[t.Name], "Tenants[%d] has the name %q, which is no entity or taken", i, t.Name)
		if err := tenancy.CheckName(t.Name); err != nil {
			p = append(p, fmt.Errorf("Tenants[%d].Name: %w", i, err))
		}
		tenants[t.Name] = true
		l := newTenant(&o.Tenants[i], o.Limits).limits
		check(min(l.Jobs, l.Models, l.Trajectories, l.Messages) > 0 && min(l.QueuedBytes, l.StoredBytes) > 0,
			"a limit of Tenants[%d] is negative", i)
	}
	_, err := o.registry()
	return errors.Join(append(p, err)...)
}

// registry has the keys and the prices of the tenants.
func (o *Options) registry() (*tenancy.Registry, error) {
	var list []tenancy.Tenant
	for _, t := range o.Tenants {
		list = append(list, tenancy.Tenant{Name: t.Name, Keys: t.Keys, Scoped: t.Scoped, Prices: t.Prices})
	}
	return tenancy.NewRegistry(list)
}

// Usage returns what each tenant has used, by name: tokens of prompts and replies, and of trainings the tokens in the
// loss and the seconds.
func (s *Server) Usage() map[string]access.Report { return s.users.Usage() }

func (s *Server) project(entity, project string) string {
	if len(s.opts.Tenants) == 1 {
		return project
	}
	return entity + "." + project
}

// Close stops the server, and the training that runs. Another server with the same folder begins it again.
func (s *Server) Close() error {
	s.cancel()
	s.work.Wait()
	s.mu.Lock()
	models, bases := slices.Collect(maps.Values(s.models)), slices.Collect(maps.Values(s.bases))
	s.mu.Unlock()
	var all []error
	for _, m := range models {
		all = append(all, m.release())
	}
	for _, m := range bases {
		all = append(all, release(m))
	}
	return errors.Join(append(all, s.storeUsage(), s.store.Close())...)
}

// The kinds of documents: models/ID.json, jobs/ID.json with the request in jobs/ID.body, and data sets in
// artifacts/ENTITY/PROJECT/NAME/train.jsonl. usage.json is beside them.
const (
	kindModels    = "models"
	kindJobs      = "jobs"
	kindArtifacts = "artifacts"
	usageFile     = "usage.json"
)

// storeUsage writes down what was used.
func (s *Server) storeUsage() error {
	return s.store.WriteJSON(s.users.Usage(), usageFile)
}

// keepUsage writes it down again and again, until the server is closed.
func (s *Server) keepUsage() {
	ticker := time.NewTicker(30 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := s.storeUsage(); err != nil {
				s.log.Error("usage could not be stored", "error", err)
			}
		case <-s.ctx.Done():
			return
		}
	}
}

// openStore opens the folder, and reads what is stored.
func (s *Server) openStore() (err error) {
	if s.store, err = tenancy.OpenFolder(s.opts.Dir, s.log, s.opts.disk, kindModels, kindJobs); err != nil {
		return err
	}
	if err = s.restore(); err != nil {
		return errors.Join(err, s.store.Close())
	}
	return nil
}

// restore reads what is stored, and queues trainings that have not ended.
func (s *Server) restore() error {
	used := map[string]access.Report{}
	tenancy.ReadJSON(s.store, &used, usageFile)
	s.users.Restore(used)
	models, err := tenancy.ReadAll(s.store, kindModels, func(rec *modelRecord) string { return rec.ID })
	if err != nil {
		return err
	}
	for _, rec := range models {
		s.models[rec.ID] = &model{record: *rec}
		if s.tenants[rec.Entity] == nil { // it is not configured any more
			s.tenants[rec.Entity] = newTenant(&Tenant{}, s.opts.Limits)
		}
	}
	if err := s.countStored(); err != nil {
		return err
	}
	jobs, err := tenancy.ReadAll(s.store, kindJobs, func(rec *jobRecord) string { return rec.ID })
	if err != nil {
		return err
	}
	for _, rec := range jobs {
		j := &job{record: *rec, model: s.models[rec.Model]}
		switch {
		case j.ended() && time.Since(rec.Created) > keepJobs:
			err = errors.Join(err, s.forget(j))
			continue
		case j.model == nil: // its document was damaged, and may come back
			s.log.Error("training of a model that is not stored", "job", rec.ID, "model", rec.Model)
			continue
		case !j.ended():
			switch info, err := os.Stat(s.store.Path(kindJobs, rec.ID+".body")); {
			case err == nil:
				j.cost = info.Size()
				s.tenants[j.model.record.Entity].queued.Add(j.cost)
			case !errors.Is(err, os.ErrNotExist): // the training says so
				return err
			}
			s.queue = append(s.queue, j)
		}
		s.jobs[rec.ID] = j
	}
	sortJobs(s.queue)
	return err
}
