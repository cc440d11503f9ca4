package tinker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// samplerMark is in every id of a sampler, and so of a sample.
const samplerMark = ":sample:"

func samplerID(session string, n int) string { return fmt.Sprintf("%s%s%d", session, samplerMark, n) }

// loadedSamplers is how many samplers of a session are in memory: the newest. Older ones are loaded again when they are
// asked.
const loadedSamplers = 8

// keptSamplers is how many samplers a session has. Training programs make one for each step and do not end them.
const keptSamplers = 256

// sampler is weights that do not change. They are loaded when they are first used.
type sampler struct {
	tenant  *tenant
	session string
	record  samplerRecord

	mu    sync.Mutex // guards what follows
	model *art.Model // nil: not in memory
	owned bool       // it is released with the sampler
	users int        // samples that are being drawn
}

// createSampler serves POST create_sampling_session.
func (s *Server) createSampler(w http.ResponseWriter, _ *http.Request, t *user, req *tinkerwire.Request) error {
	if _, err := s.findSession(t, req.SessionID); err != nil {
		return err
	}
	if req.SamplingSessionSeqID == nil {
		return fail(http.StatusBadRequest, "sampling_session_seq_id is missing")
	}
	rec, err := s.describeSampler(t, req.BaseModel, req.ModelPath)
	if err != nil {
		return err
	}
	rec.ID = samplerID(req.SessionID, *req.SamplingSessionSeqID)
	if err := s.addSampler(t.tenant, req.SessionID, rec, nil); err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, tinkerwire.Result{SamplingSessionID: rec.ID, Type: "create_sampling_session"})
}

// describeSampler says which weights a path, or the name of a base, stands for.
func (s *Server) describeSampler(t *user, base, path string) (rec samplerRecord, err error) {
	if path == "" {
		if s.base(base).Name == "" {
			return rec, unknownBase(base, s.opts.Bases)
		}
		return samplerRecord{Base: base}, t.key.ReachesBase(base)
	}
	run, saved, err := s.findWeights(t, path)
	if err != nil {
		return rec, err
	}
	if base != "" && base != run.Base {
		return rec, failf(http.StatusBadRequest, "%.200q has base model %q, not %.100q", path, run.Base, base)
	}
	return samplerRecord{Base: run.Base, Project: run.Project, Run: run.ID, Path: saved.Weights, Tinker: path}, nil
}

// addSampler adds a sampler to a session, once. model may be nil.
func (s *Server) addSampler(t *tenant, session string, rec samplerRecord, model *art.Model) error {
	live, err := s.noteSampler(t, session, rec, model)
	if live == nil || err != nil {
		return err
	}
	if err = s.storeSession(live); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.samplers, rec.ID)
		live.record.Samplers = slices.DeleteFunc(live.record.Samplers, func(r samplerRecord) bool { return r.ID == rec.ID })
	}
	return err
}

// noteSampler is addSampler without the session's document. live is nil when there is nothing new.
func (s *Server) noteSampler(
	t *tenant, id string, rec samplerRecord, model *art.Model,
) (live *session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live = s.sessions[id]
	if live == nil {
		return nil, errEnded
	}
	if old := s.samplers[rec.ID]; old != nil {
		if model == nil && old.record != rec {
			return nil, fail(http.StatusBadRequest, "this sampling_session_seq_id is used for another sampler; count on")
		}
		return nil, nil
	}
	s.samplers[rec.ID] = &sampler{tenant: t, session: id, record: rec, model: model, owned: true}
	live.record.Samplers = append(live.record.Samplers, rec)
	if old := live.record.Samplers[0]; len(live.record.Samplers) > keptSamplers {
		live.record.Samplers = slices.Delete(live.record.Samplers, 0, 1)
		if sm := s.samplers[old.ID]; sm != nil {
			delete(s.samplers, old.ID)
			s.spawn("the release of a sampler", func() { sm.release(s, false) })
		}
	}
	return live, nil
}

// findSampler returns a sampler of a tenant.
func (s *Server) findSampler(t *user, id string) (*sampler, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.samplers[id]
	if found == nil || found.tenant != t.tenant {
		return nil, failf(http.StatusNotFound, "there is no sampling session %.100q", id)
	}
	if found.record.Run == "" {
		return found, t.key.ReachesBase(found.record.Base)
	}
	return found, t.key.Reaches(found.record.Project, found.record.Run)
}

// use calls f with the model of a sampler, which is loaded if it is not in memory.
func (sm *sampler) use(ctx context.Context, s *Server, f func(*art.Model) error) error {
	model, err := sm.acquire(ctx, s)
	if err != nil {
		return err
	}
	defer s.shed(sm.session)
	defer func() {
		sm.mu.Lock()
		sm.users--
		sm.mu.Unlock()
	}()
	return f(model)
}

// acquire returns the model, and counts a user.
func (sm *sampler) acquire(ctx context.Context, s *Server) (*art.Model, error) {
	sm.mu.Lock()
	defer sm.mu.Unlock()
	if sm.model == nil {
		if err := sm.load(ctx, s); err != nil {
			return nil, err
		}
	}
	sm.users++
	return sm.model, nil
}

// load loads the weights. mu is held.
func (sm *sampler) load(ctx context.Context, s *Server) error {
	if sm.record.Run == "" {
		model, err := s.baseModel(ctx, sm.record.Base)
		sm.model, sm.owned = model, false
		return err
	}
	rec, err := s.findRecord(sm.tenant.all(), sm.record.Run)
	if err != nil {
		return err
	}
	err = s.withModel(ctx, rec, func(m *art.Model) error {
		sm.model, err = m.Snapshot(ctx, sm.record.Path)
		return err
	})
	sm.owned = true
	if errors.Is(err, art.ErrInvalid) {
		return failf(http.StatusNotFound, "the weights of sampling session %s are not stored any more: %s", sm.record.ID,
			tenancy.Public(err))
	}
	return err
}

// shed releases older samplers of a session that nobody uses.
func (s *Server) shed(session string) {
	s.mu.Lock()
	var list []*sampler
	if live := s.sessions[session]; live != nil {
		for _, rec := range live.record.Samplers {
			if sm := s.samplers[rec.ID]; sm != nil {
				list = append(list, sm)
			}
		}
	}
	s.mu.Unlock()
	loaded := 0
	for _, sm := range slices.Backward(list) {
		sm.mu.Lock()
		counts := sm.model != nil && sm.owned
		sm.mu.Unlock()
		if counts {
			if loaded++; loaded > loadedSamplers {
				sm.release(s, false)
			}
		}
	}
}

// release frees the weights, unless somebody uses them; force is for an ended session.
func (sm *sampler) release(s *Server, force bool) {
	sm.mu.Lock()
	defer sm.mu.Unlock()
	if sm.model == nil || sm.users > 0 && !force {
		return
	}
	if sm.owned {
		if err := sm.model.Release(context.WithoutCancel(s.ctx)); err != nil && !errors.Is(err, art.ErrClosed) {
			s.log.Warn("sampler could not be released", "sampler", sm.record.ID, "error", err)
		}
	}
	sm.model = nil
}

// baseModel returns the model that samples from a base, which is registered once.
func (s *Server) baseModel(ctx context.Context, name string) (*art.Model, error) {
	defer s.loading.Lock(name)()
	s.mu.Lock()
	m := s.baseModels[name]
	s.mu.Unlock()
	if m != nil {
		return m, nil
	}
	m = art.NewModel("base-"+folderName(name), &art.ModelOptions{
		Project: "tinker-bases", Base: s.base(name).Model, Frozen: true,
	})
	if err := m.Register(ctx, s.backend); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.baseModels[name] = m
	return m, nil
}

// folderName makes the name of a folder of the name of a base.
func folderName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\@:*?"<>| `, r) {
			return '-'
		}
		return r
	}, name)
}
