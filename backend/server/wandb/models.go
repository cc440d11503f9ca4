package wandb

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
	"github.com/goart-dev/art/internal/wandbwire"
)

// modelRecord is what is stored of a model.
type modelRecord struct {
	ID, Entity, Project, Name string
	Base                      string // as clients call it
	Run                       string // its name in the run directory
	Created                   time.Time
	Deleted                   bool // its run is kept
}

// model is a model of a client. record.Deleted is guarded by the server's mu.
type model struct {
	record modelRecord

	opening    sync.Mutex // guards what follows, and is held while the model is registered
	registered *art.Model // nil until it is used

	measuring sync.Mutex // guards bytes
	bytes     int64      // that the run has on disk, as they were counted
}

// release frees the memory of a model, if its backend can and is open.
func (m *model) release() error {
	m.opening.Lock()
	defer m.opening.Unlock()
	if m.registered == nil {
		return nil
	}
	err := release(m.registered)
	m.registered = nil
	return err
}

func release(m *art.Model) error {
	err := m.Release(context.Background())
	if errors.Is(err, art.ErrUnsupported) || errors.Is(err, art.ErrClosed) {
		return nil
	}
	return err
}

// run is what scoped keys call it.
func (m *model) run() string { return m.record.Project + "/" + m.record.Name }

// artifact is the name under which a model answers.
func (m *model) artifact() string {
	return wandbwire.ArtifactScheme + m.record.Entity + "/" + m.record.Project + "/" + m.record.Name
}

// open registers a model that is used for the first time.
func (s *Server) open(ctx context.Context, m *model) (*art.Model, error) {
	m.opening.Lock()
	defer m.opening.Unlock()
	if m.registered != nil {
		return m.registered, nil
	}
	s.mu.Lock()
	deleted := m.record.Deleted
	s.mu.Unlock()
	if deleted || s.ctx.Err() != nil {
		return nil, art.ErrClosed
	}
	base, err := s.base(m.record.Base)
	if err != nil {
		return nil, err
	}
	rec := &m.record
	own := art.NewModel(rec.Run, &art.ModelOptions{
		Project: s.project(rec.Entity, rec.Project), Base: base, Events: s.opts.Events, Logger: s.log,
	})
	if err := own.Register(ctx, s.backend); err != nil {
		return nil, err
	}
	m.registered = own
	return own, nil
}

// base returns what the backend calls a base model.
func (s *Server) base(name string) (string, error) {
	var names []string
	for _, b := range s.opts.Bases {
		if b.Name == name {
			return cmp.Or(b.Model, b.Name), nil
		}
		names = append(names, strconv.Quote(b.Name))
	}
	return "", failf(http.StatusBadRequest, "there is no base_model %.200q; there are %s", name, strings.Join(names, ", "))
}

// createModel serves POST models.
func (s *Server) createModel(r *http.Request, by *tenancy.Caller) (any, error) {
	var req wandbwire.CreateModel
	if err := readSmall(r, &req); err != nil {
		return nil, err
	}
	entity, name := orDefault(req.Entity, by.Tenant), orDefault(req.Name, "")
	project := orDefault(req.Project, cmp.Or(by.Project(), "default"))
	if name == "" {
		name = "model-" + strings.ToLower(rand.Text()[:8])
	}
	if entity != by.Tenant {
		return nil, failf(http.StatusForbidden, "the key is of the entity %q, not of %.200q", by.Tenant, entity)
	}
	if err := by.Reaches(project, project+"/"+name); err != nil {
		return nil, err
	}
	return s.makeModel(r.Context(), &req, entity, project, name)
}

// checkNames refuses names that cannot be those of files, or part of an artifact's name.
func checkNames(project, name string) error {
	for _, part := range []string{project, name} {
		if err := tenancy.CheckName(part); err != nil {
			return failf(http.StatusBadRequest, "%v", err)
		}
	}
	return nil
}

// makeModel returns the model of a name, a new one if there is none.
func (s *Server) makeModel(
	ctx context.Context, req *wandbwire.CreateModel, entity, project, name string,
) (any, error) {
	s.mu.Lock()
	m := s.named(entity, project, name)
	isNew := m == nil
	if isNew {
		err := checkNames(project, name)
		if n, t := s.undeleted(entity), s.tenants[entity]; err == nil && n >= t.limits.Models {
			err = failf(http.StatusForbidden, "there are %d models already; delete one (DELETE %smodels/ID), whose run is kept",
				n, Prefix)
		} else if err == nil {
			err = t.mayStore(0)
		}
		if err != nil {
			s.mu.Unlock()
			return nil, err
		}
		m = &model{record: modelRecord{
			ID: "model-" + strings.ToLower(rand.Text()), Entity: entity, Project: project, Name: name, Base: req.BaseModel,
			Run: s.freeRun(entity, project, name), Created: time.Now(),
		}}
		s.models[m.record.ID] = m // before others look for the name
	}
	s.mu.Unlock()
	switch {
	case isNew:
	case !req.ReturnExisting:
		return nil, failf(http.StatusConflict, "the model %s exists; set return_existing, or choose another name",
			m.artifact())
	case m.record.Base != req.BaseModel:
		return nil, failf(http.StatusConflict, "the model %s exists and has the base_model %q, not %.200q", m.artifact(),
			m.record.Base, req.BaseModel)
	}
	_, err := s.open(ctx, m)
	if err == nil && isNew {
		err = s.store.WriteJSON(&m.record, kindModels, m.record.ID+".json")
	}
	if err != nil && isNew {
		s.mu.Lock()
		delete(s.models, m.record.ID)
		s.mu.Unlock()
	}
	s.remeasure(m)
	rec := &m.record
	return wandbwire.Model{
		ID: rec.ID, Entity: rec.Entity, Project: rec.Project, Name: rec.Name, BaseModel: rec.Base,
	}, err
}

// undeleted counts the models of an entity. mu is held.
func (s *Server) undeleted(entity string) (n int) {
	for _, m := range s.models {
		if m.record.Entity == entity && !m.record.Deleted {
			n++
		}
	}
	return n
}

func orDefault(p *string, fallback string) string {
	if p == nil || *p == "" {
		return fallback
	}
	return *p
}

// named returns the model of a name, nil if there is none. mu is held.
func (s *Server) named(entity, project, name string) *model {
	for _, m := range s.models {
		rec := &m.record
		if !rec.Deleted && rec.Entity == entity && rec.Project == project && rec.Name == name {
			return m
		}
	}
	return nil
}

// freeRun returns the name of the run of a new model: another one than those of deleted models of its name. mu is held.
func (s *Server) freeRun(entity, project, name string) string {
	run, taken := name, func(run string) bool {
		for _, m := range s.models {
			if m.record.Entity == entity && m.record.Project == project && m.record.Run == run {
				return true
			}
		}
		return false
	}
	for n := 2; taken(run); n++ {
		run = fmt.Sprintf("%s-%d", name, n)
	}
	return run
}

// byID returns a model by its id, if the key covers it.
func (s *Server) byID(id string, by *tenancy.Caller) (*model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.models[id]; m != nil && m.record.Entity == by.Tenant && !m.record.Deleted {
		return m, by.Reaches(m.record.Project, m.run())
	}
	return nil, failf(http.StatusNotFound, "there is no model with the id %.80q; register it first", id)
}

// opened is byID with the registered model.
func (s *Server) opened(r *http.Request, by *tenancy.Caller) (*model, *art.Model, error) {
	m, err := s.byID(r.PathValue("id"), by)
	if err != nil {
		return nil, nil, err
	}
	own, err := s.open(r.Context(), m)
	return m, own, err
}

// find returns the model that an artifact's name means; see [server.Config].
func (s *Server) find(r *http.Request, name string) (*art.Model, *art.Pin, error) {
	by := s.users.Caller(r)
	if by == nil {
		return nil, nil, unknownKey()
	}
	if err := by.Needs(r.Method+" "+r.URL.Path, access.Sample); err != nil {
		return nil, nil, forbidden(err)
	}
	for _, b := range s.opts.Bases {
		if b.Name == name {
			if err := by.ReachesBase(name); err != nil {
				return nil, nil, forbidden(err)
			}
			m, err := s.frozen(r.Context(), b)
			return m, nil, public(err)
		}
	}
	path, ok := strings.CutPrefix(name, wandbwire.ArtifactScheme)
	unknown := failf(http.StatusNotFound, "there is no model %.200q; want wandb-artifact:///ENTITY/PROJECT/NAME of a "+
		"model that is registered, and :stepN for a step that has a checkpoint", name)
	parts := strings.Split(path, "/")
	if !ok || len(parts) != 3 || parts[0] != by.Tenant {
		return nil, nil, unknown
	}
	last, alias, _ := strings.Cut(parts[2], ":")
	if err := by.Reaches(parts[1], parts[1]+"/"+last); err != nil {
		return nil, nil, forbidden(err)
	}
	s.mu.Lock()
	m := s.named(parts[0], parts[1], last)
	s.mu.Unlock()
	if m == nil {
		return nil, nil, unknown
	}
	own, err := s.open(r.Context(), m)
	if err != nil || alias == "" || alias == "latest" {
		return own, nil, public(err)
	}
	step, err := strconv.Atoi(strings.TrimPrefix(alias, "step"))
	if err != nil || !strings.HasPrefix(alias, "step") {
		return nil, nil, unknown
	}
	pin, err := own.PinStep(r.Context(), step)
	if errors.Is(err, art.ErrInvalid) {
		return nil, nil, unknown
	}
	return own, pin, public(err)
}

// frozen returns a base model, registered when it is asked for first: for prompted baselines.
func (s *Server) frozen(ctx context.Context, b Base) (*art.Model, error) {
	defer s.loading.Lock(b.Name)()
	s.mu.Lock()
	known := s.bases[b.Name]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	if s.ctx.Err() != nil {
		return nil, art.ErrClosed
	}
	name := "base-" + strings.Map(func(c rune) rune {
		if strings.ContainsRune(`/\@: `, c) {
			return '-'
		}
		return c
	}, b.Name)
	m := art.NewModel(name, &art.ModelOptions{Project: "wandb-bases", Base: cmp.Or(b.Model, b.Name), Frozen: true})
	if err := m.Register(ctx, s.backend); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bases[b.Name] = m
	return m, nil
}

// ready reports that requests can be answered: models are loaded when they are named.
func ready(context.Context) error { return nil }

// deleteModel serves DELETE models/ID. The run stays in the run directory.
func (s *Server) deleteModel(r *http.Request, by *tenancy.Caller) (any, error) {
	m, err := s.byID(r.PathValue("id"), by)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	for _, j := range s.jobs {
		if j.model == m && !j.ended() {
			s.mu.Unlock()
			return nil, failf(http.StatusConflict, "the model is being trained; delete it when %s has ended", j.record.ID)
		}
	}
	m.record.Deleted = true
	record := m.record
	s.mu.Unlock()
	if err := s.store.WriteJSON(&record, kindModels, record.ID+".json"); err != nil {
		s.mu.Lock()
		m.record.Deleted = false
		s.mu.Unlock()
		return nil, err
	}
	return struct{}{}, m.release()
}

// logGroups serves POST models/ID/log.
func (s *Server) logGroups(r *http.Request, by *tenancy.Caller) (any, error) {
	m, own, err := s.opened(r, by)
	if err != nil {
		return nil, err
	}
	t := s.tenants[by.Tenant]
	if err := t.mayStore(0); err != nil {
		return nil, err
	}
	var req wandbwire.LogGroups
	if err := readJSON(r, &req, t.limits.counts()); err != nil {
		return nil, err
	}
	groups, err := wandbwire.Decode(req.Groups, own.Step(), s.tokenizer(r.Context(), own))
	if err == nil {
		err = tenancy.CheckName(req.Split)
	}
	if err != nil {
		return nil, failf(http.StatusBadRequest, "%s", tenancy.Public(err))
	}
	defer s.remeasure(m)
	return struct{}{}, own.Log(r.Context(), req.Split, groups, nil)
}

// tokenizer renders the prompts of choices that carry no exact tokens.
func (s *Server) tokenizer(ctx context.Context, m *art.Model) wandbwire.Tokenize {
	return func(h *art.History) ([]int32, error) { return m.Tokenize(ctx, h, nil) }
}

// listCheckpoints serves GET models/ID/checkpoints.
func (s *Server) listCheckpoints(r *http.Request, by *tenancy.Caller) (any, error) {
	_, own, err := s.opened(r, by)
	if err != nil {
		return nil, err
	}
	list, err := s.checkpoints(r.Context(), own)
	if err != nil {
		return nil, err
	}
	switch order := r.URL.Query().Get("order"); order {
	case "", "desc":
		slices.Reverse(list)
	case "asc":
	default:
		return nil, failf(http.StatusBadRequest, "order is %.40q, want asc or desc", order)
	}
	return page(r, list, func(c wandbwire.Checkpoint) string { return c.ID })
}

// checkpoints returns those of a model in ascending order, with what was logged at their steps.
func (s *Server) checkpoints(ctx context.Context, m *art.Model) (list []wandbwire.Checkpoint, err error) {
	steps, rows := []int{m.Step()}, []art.HistoryRow(nil)
	if keeper, ok := s.backend.(driver.CheckpointKeeper); ok {
		if steps, err = keeper.Checkpoints(ctx, m); err != nil {
			return nil, err
		}
		if rows, err = keeper.History(ctx, m); err != nil {
			return nil, err
		}
	}
	if len(steps) == 0 {
		steps = []int{m.Step()} // it answers, as yet without a checkpoint
	}
	for _, step := range steps {
		c := wandbwire.Checkpoint{ID: fmt.Sprintf("step%d", step), Step: step, Metrics: map[string]float64{}}
		for _, row := range rows {
			if row.Step == step {
				maps.Copy(c.Metrics, wandbwire.Finite(row.Metrics))
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// deleteCheckpoints serves DELETE models/ID/checkpoints. The newest one stays: it is what the run goes on with.
func (s *Server) deleteCheckpoints(r *http.Request, by *tenancy.Caller) (any, error) {
	m, own, err := s.opened(r, by)
	if err != nil {
		return nil, err
	}
	var req wandbwire.DeleteCheckpoints
	if err := readSmall(r, &req); err != nil {
		return nil, err
	}
	keeper, ok := s.backend.(driver.CheckpointKeeper)
	if !ok {
		return nil, failf(http.StatusNotImplemented, "%T keeps no checkpoints", s.backend)
	}
	before, err := keeper.Checkpoints(r.Context(), own)
	if err != nil {
		return nil, err
	}
	keep := slices.DeleteFunc(slices.Clone(before), func(step int) bool { return slices.Contains(req.Steps, step) })
	if err := keeper.DeleteCheckpoints(r.Context(), own, keep); err != nil {
		return nil, err
	}
	s.remeasure(m)
	after, err := keeper.Checkpoints(r.Context(), own)
	out := wandbwire.DeletedCheckpoints{Deleted: len(before) - len(after), NotFound: []int{}}
	for _, step := range req.Steps {
		if !slices.Contains(before, step) {
			out.NotFound = append(out.NotFound, step)
		}
	}
	return out, err
}
