// Package tinker serves the Tinker API over any backend with the primitives of training and sampling: programs that
// were written for that service train on ours. docs/tinker.md says how, and lists routes and limits.
//
//	s, err := tinker.New(backend, &tinker.Options{
//		Dir: ".art/tinker", Bases: []tinker.Base{{Name: "Qwen/Qwen3-8B", Model: "tiny"}},
//	})
//	handler, err := s.Handler(&art.HandlerOptions{Keys: []string{"tml-secret"}})
//
// Both dialects are served: results are protobuf for clients that accept it, and JSON for others.
//
// A training run is an [art.Model], whose project is the tenant and whose optimizer steps are its policy steps: it
// has a run directory like any other. Operations of a run are executed in the order of their seq_id, each once. An
// operation is on disk before it is acknowledged, so that a server that stops, in whatever way, goes on where it was:
// it begins with the newest step, and executes what came after it again.
package tinker

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
	"github.com/goart-dev/art/internal/stable"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// Server serves the Tinker API. Make one with [New].
type Server struct {
	opts    Options
	backend Backend
	log     *slog.Logger
	store   *tenancy.Folder
	tenants []*tenant
	users   *tenancy.Registry

	ctx                context.Context
	cancel             context.CancelFunc
	work               sync.WaitGroup
	training, sampling *fair

	creating tenancy.Locks // by tenant: held while a run is created, or the index of one changes that is not in memory
	loading  tenancy.Locks // by run or base: held while a model is registered that no session owns

	mu         sync.Mutex            // held for moments only, never while something is read, written or computed
	baseModels map[string]*art.Model // by the name of the base
	sessions   map[string]*session
	runs       map[string]*run       // in memory
	records    map[string]*runRecord // of runs that are not in memory
	samplers   map[string]*sampler
	futures    map[string]*future
	links      map[string]*link

	newID func() string // of a session; tests have their own
}

// New makes a server over a backend, and restores what another process has left in opts.Dir. The backend stays the
// caller's, who closes it after the server.
func New(backend Backend, opts *Options) (*Server, error) {
	if opts == nil {
		opts = &Options{}
	}
	s := &Server{
		opts: *opts, backend: backend, baseModels: map[string]*art.Model{}, sessions: map[string]*session{},
		runs: map[string]*run{}, records: map[string]*runRecord{}, samplers: map[string]*sampler{},
		futures: map[string]*future{}, links: map[string]*link{},
		newID: func() string { return "s-" + strings.ToLower(rand.Text()) },
	}
	s.opts.fill()
	if err := s.opts.validate(); err != nil {
		return nil, err
	}
	s.log = s.opts.Logger
	s.training, s.sampling = newFair(1), newFair(s.opts.Slots)
	for i := range s.opts.Tenants {
		s.tenants = append(s.tenants, newTenant(&s.opts.Tenants[i], s.opts.Limits))
	}
	s.users, _ = registry(s.opts.Tenants) // validated
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.restore(); err != nil {
		if !errors.Is(err, art.ErrLocked) { // which says what to do
			err = &art.Error{Op: "serve tinker", Err: err, Hint: "check the folder " + opts.Dir}
		}
		return nil, errors.Join(err, s.Close())
	}
	s.spawn("the janitor", s.janitor)
	return s, nil
}

// spawn starts a goroutine that Close waits for. A panic in it does not end the others.
func (s *Server) spawn(what string, f func()) {
	s.work.Go(func() { _ = s.protect(what, func() error { f(); return nil }) }) // the panic is in the log
}

// protect calls f, and makes an error of a panic.
func (s *Server) protect(what string, f func() error) error { return tenancy.Recovered(s.log, what, f) }

// base returns a base model by its name; its name is "" if there is none.
func (s *Server) base(name string) Base {
	if at := slices.IndexFunc(s.opts.Bases, func(b Base) bool { return b.Name == name }); at >= 0 {
		return s.opts.Bases[at]
	}
	return Base{}
}

func (s *Server) restore() (err error) {
	disk := s.opts.disk
	if s.opts.noSync {
		disk = stable.NoSync
	}
	s.store, err = tenancy.OpenFolder(s.opts.Dir, s.log, disk, kindSessions, kindRuns)
	if err != nil {
		return err
	}
	used := map[string]access.Report{}
	tenancy.ReadJSON(s.store, &used, usageFile)
	s.users.Restore(used)
	records, err := tenancy.ReadAll(s.store, kindRuns, func(rec *runRecord) string { return rec.Name })
	if err != nil {
		return err
	}
	for _, rec := range records {
		rec.Corrupted = ""
		if t := s.tenantNamed(rec.Tenant); t != nil {
			for i := range rec.Checkpoints {
				t.stored.Add(rec.Checkpoints[i].SizeBytes)
			}
		}
		s.records[rec.ID] = rec
	}
	sessions, err := tenancy.ReadAll(s.store, kindSessions, func(rec *sessionRecord) string { return rec.ID })
	if err != nil {
		return err
	}
	for _, rec := range sessions {
		s.restoreSession(rec)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tenants {
		slices.SortFunc(t.results, func(a, b *future) int { return a.ended.Compare(b.ended) })
		for _, f := range t.results {
			f.ended = time.Now() // not when it ended: the clock may have been set since
		}
	}
	return nil
}

// restoreSession opens the runs of a session again.
func (s *Server) restoreSession(rec *sessionRecord) {
	t := s.tenantNamed(rec.Tenant)
	if t == nil {
		s.log.Warn("session of a tenant that is not configured any more", "tenant", rec.Tenant)
		return
	}
	s.sessions[rec.ID] = &session{tenant: t, record: *rec, seen: time.Now()}
	for _, sm := range rec.Samplers {
		s.samplers[sm.ID] = &sampler{tenant: t, session: rec.ID, record: sm, owned: true}
	}
	for _, id := range rec.Runs {
		if stored := s.records[id]; stored != nil {
			if _, err := s.startRun(t, stored); err != nil { // the others are served
				s.log.Error("training run cannot be continued", "run", id,
					"journal", s.store.Path(kindRuns, stored.Name+".journal"), "error", err)
				stored.Corrupted = tenancy.Public(err)
			}
		}
	}
}

// startRun brings a run into memory.
func (s *Server) startRun(t *tenant, rec *runRecord) (*run, error) {
	journal, records, err := s.store.OpenJournal(kindRuns, rec.Name+".journal")
	if err != nil {
		return nil, err
	}
	r := &run{
		server: s, tenant: t, name: rec.Name, record: *rec, waiting: map[int]*task{}, futures: map[int]*future{},
		begun: map[int]int{}, journal: journal, wake: make(chan struct{}, 1),
		stop: make(chan struct{}), opened: make(chan struct{}), ended: make(chan struct{}),
	}
	if err := s.protect("the reading of a journal", func() error { return r.restore(records) }); err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	s.mu.Lock()
	s.runs[rec.ID] = r
	delete(s.records, rec.ID)
	s.mu.Unlock()
	s.spawn("a training run", r.work)
	return r, nil
}

// tenantNamed returns a tenant, nil if there is none of that name.
func (s *Server) tenantNamed(name string) *tenant {
	if at := slices.IndexFunc(s.tenants, func(t *tenant) bool { return t.name == name }); at >= 0 {
		return s.tenants[at]
	}
	return nil
}

// dropFuture takes back openFuture.
func (s *Server) dropFuture(f *future) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.futures, f.id)
	f.tenant.end(f.cost)
}

// Close stops the server. Sessions and operations go on when another one is made with the same folder.
func (s *Server) Close() error {
	s.cancel()
	s.mu.Lock()
	live := slices.Collect(maps.Values(s.runs))
	s.mu.Unlock()
	for _, r := range live {
		s.releaseRun(r, "")
	}
	s.work.Wait()
	s.mu.Lock()
	samplers, bases := s.samplers, s.baseModels
	s.samplers, s.baseModels = map[string]*sampler{}, map[string]*art.Model{}
	s.mu.Unlock()
	for _, sm := range samplers {
		sm.release(s, true)
	}
	var all []error
	for _, m := range bases {
		if err := m.Release(context.WithoutCancel(s.ctx)); !errors.Is(err, art.ErrClosed) {
			all = append(all, err)
		}
	}
	if s.store != nil {
		all = append(all, s.store.WriteJSON(s.users.Usage(), usageFile), s.store.Close())
	}
	return errors.Join(all...)
}

// The kinds of documents: sessions/ID.json, and runs/NAME.json with runs/NAME.journal. usage.json is beside them.
const (
	kindSessions = "sessions"
	kindRuns     = "runs"
	usageFile    = "usage.json"
)

// sessionRecord is what is stored of a session.
type sessionRecord struct {
	ID, Tenant           string
	Key                  string // name of the one that created it; "" for one without limits
	Created              time.Time
	Tags                 []string
	Metadata             map[string]any
	DisplayName, Project string
	Runs                 []string
	Samplers             []samplerRecord
}

// samplerRecord says which weights a sampler has: those of a base when Run is "".
type samplerRecord struct {
	ID, Base string
	Project  string // of the run
	Run      string // training run
	Path     string // of the backend: "@STEP" of the run, or saved weights
	Tinker   string // the path that a client named, if it did
}

// runRecord is what is stored of a training run.
type runRecord struct {
	ID, Name, Tenant, Session string
	Key, Project              string // of the session
	Base                      string
	LoRA                      art.LoRA
	MLP, Attention            bool
	Seed                      uint64
	Created, LastRequest      time.Time
	Metadata                  map[string]any
	Corrupted                 string // why it cannot be continued
	Checkpoints               []checkpoint
}

// checkpoint is one entry of the index of saved weights.
type checkpoint struct {
	tinkerwire.Checkpoint
	Saved   string // the name that the backend knows, loop.SavedWeights.Name
	Weights string // the path that the backend returned; "" while it is being stored
	Seq     int    // of the request that stored it
}
