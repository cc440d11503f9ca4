package tinker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// scheme begins the paths of saved weights: tinker://RUN/KIND/NAME.
const scheme = "tinker://"

// save stores the training state under a name.
func (r *run) save(ctx context.Context, t *task, kind string) (*outcome, error) {
	req := t.call.small
	if err := tenancy.CheckName(req.Path); err != nil {
		return nil, failf(http.StatusBadRequest, "the name of weights: %v", err)
	}
	id := kind + "/" + req.Path
	estimate := int64(1) // of the size: that of what the run has saved before
	r.mu.Lock()
	for i := range r.record.Checkpoints {
		estimate = max(estimate, r.record.Checkpoints[i].SizeBytes)
	}
	r.mu.Unlock()
	if err := r.tenant.mayStore(estimate); err != nil {
		return nil, err
	}
	defer r.tenant.stored.Add(-estimate) // in its place comes the true size
	old, again, err := r.reserve(t, id, kind)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	entry := *r.entryOf(id, t.seq)
	r.mu.Unlock()
	save := func() (string, error) {
		return loop.SaveWeights(ctx, r.model, entry.Saved, kind == tinkerwire.WeightsKind)
	}
	path, err := save()
	if errors.Is(err, art.ErrInvalid) {
		switch w, taken := r.stored(ctx, entry.Saved); {
		case taken && again: // by the same request, before the server stopped; the state is the same
			path, err = w.Path, nil
		case taken: // it was left by a request that has failed
			r.deleteSaved(ctx, entry.Saved)
			path, err = save()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w, _ := r.stored(ctx, entry.Saved)
	size, stored := w.Bytes, r.entryOf(id, t.seq)
	counted := stored.SizeBytes // if a server before this one got as far
	if err == nil {
		stored.Weights, stored.SizeBytes = path, size
		if err = r.storeRecord(); err != nil {
			r.deleteSaved(ctx, entry.Saved)
			stored.SizeBytes = counted
		}
	}
	if err != nil { // take back what reserve has written
		r.drop(func(c *checkpoint) bool { return c.ID == id && c.Seq == t.seq })
		return nil, err
	}
	r.tenant.stored.Add(size - counted)
	if old != "" {
		r.drop(func(c *checkpoint) bool { return c.ID == id && c.Seq != t.seq })
		r.deleteSaved(ctx, old)
	}
	return &outcome{Result: &tinkerwire.Result{Path: entry.Path, Type: t.call.op, SizeBytes: size}}, nil
}

// reserve writes into the index that weights are being stored, and returns the stored name of those they replace, and
// whether that was written before the server stopped.
func (r *run) reserve(t *task, id, kind string) (old string, again bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	req := t.call.small
	saved := strings.TrimSuffix(kind, "_weights") + "." + req.Path // the kinds have names of their own
	for i := range r.record.Checkpoints {
		c := &r.record.Checkpoints[i]
		switch {
		case c.ID != id:
		case c.Seq == t.seq:
			return "", true, nil
		case !req.Overwrite:
			return "", false, failf(http.StatusBadRequest, "%s is stored already; choose another name, or overwrite", c.Path)
		default:
			old, saved = c.Saved, fmt.Sprintf("%s.%d", saved, t.seq)
		}
	}
	if err := r.checkMetadata(req.UserMetadata); err != nil {
		return "", false, err
	}
	c := checkpoint{Saved: saved, Seq: t.seq, Checkpoint: tinkerwire.Checkpoint{
		ID: id, Type: checkpointTypes[kind], Time: time.Now().UTC(), Path: scheme + r.record.ID + "/" + id,
		UserMetadata: req.UserMetadata, ExpiresAt: expiry(req.TTLSeconds),
	}}
	r.record.Checkpoints = append(r.record.Checkpoints, c)
	if err := r.storeRecord(); err != nil {
		r.record.Checkpoints = r.record.Checkpoints[:len(r.record.Checkpoints)-1]
		return "", false, err
	}
	return old, false, nil
}

// checkpointTypes are the types of checkpoints by their kind.
var checkpointTypes = map[string]string{
	tinkerwire.WeightsKind: tinkerwire.Training, tinkerwire.SamplerKind: tinkerwire.Sampler,
	tinkerwire.ExternalKind: tinkerwire.External,
}

func expiry(seconds *float64) *time.Time {
	if seconds == nil {
		return nil
	}
	return new(time.Now().UTC().Add(time.Duration(*seconds * float64(time.Second))))
}

// entryOf returns the entry that a request has made. mu is held.
func (r *run) entryOf(id string, seq int) *checkpoint {
	for i := range r.record.Checkpoints {
		if c := &r.record.Checkpoints[i]; c.ID == id && c.Seq == seq {
			return c
		}
	}
	return &checkpoint{}
}

// drop takes entries off the index, and what they have off that of the tenant. mu is held.
func (r *run) drop(which func(c *checkpoint) bool) {
	r.record.Checkpoints = slices.DeleteFunc(r.record.Checkpoints, func(c checkpoint) bool {
		if which(&c) {
			r.tenant.stored.Add(-c.SizeBytes)
			return true
		}
		return false
	})
	if err := r.storeRecord(); err != nil { // they are in the index until that is stored again
		r.server.log.Error("training run could not be stored", "run", r.record.ID, "error", err)
	}
}

// deleteSaved deletes weights that are not in the index.
func (r *run) deleteSaved(ctx context.Context, saved string) {
	keeper, ok := r.server.backend.(loop.WeightsKeeper)
	if !ok {
		return
	}
	if err := keeper.DeleteWeights(ctx, r.model, saved); err != nil {
		r.server.log.Warn("weights could not be deleted", "run", r.record.ID, "error", err)
	}
}

// stored returns what the backend knows of saved weights.
func (r *run) stored(ctx context.Context, saved string) (loop.SavedWeights, bool) {
	keeper, ok := r.server.backend.(loop.WeightsKeeper)
	if !ok {
		return loop.SavedWeights{}, false
	}
	list, err := keeper.SavedWeights(ctx, r.model)
	at := slices.IndexFunc(list, func(w loop.SavedWeights) bool { return w.Name == saved })
	if err != nil || at < 0 {
		return loop.SavedWeights{}, false
	}
	return list[at], true
}

// findWeights returns saved weights of a tenant, and the run that has saved them.
func (s *Server) findWeights(t *user, path string) (*runRecord, *checkpoint, error) {
	rest, ok := strings.CutPrefix(path, scheme)
	id, weights, _ := strings.Cut(rest, "/")
	kind, _, _ := strings.Cut(weights, "/")
	if !ok || strings.Count(weights, "/") != 1 || checkpointTypes[kind] == "" {
		return nil, nil, failf(http.StatusBadRequest,
			"%.200q is no path of weights, which is %sRUN/weights/NAME or %[2]sRUN/sampler_weights/NAME", path, scheme)
	}
	rec, err := s.findRecord(t, id)
	if statusOf(err) == http.StatusForbidden {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, failf(http.StatusNotFound, "there are no weights %.200q", path)
	}
	for i := range rec.Checkpoints {
		if c := &rec.Checkpoints[i]; c.ID == weights && c.Weights != "" && !c.expired() {
			return rec, c, nil
		}
	}
	return nil, nil, failf(http.StatusNotFound, "there are no weights %.200q", path)
}

func (c *checkpoint) expired() bool { return c.ExpiresAt != nil && c.ExpiresAt.Before(time.Now()) }

// findRecord returns a copy of the record of a run, in memory or not.
func (s *Server) findRecord(t *user, id string) (*runRecord, error) {
	s.mu.Lock()
	r, rec := s.runs[id], s.records[id]
	s.mu.Unlock()
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		rec = &r.record
	}
	if rec == nil || rec.Tenant != t.name {
		return nil, failf(http.StatusNotFound, "there is no training run %.100q", id)
	}
	if err := t.key.Reaches(rec.Project, id); err != nil {
		return nil, err
	}
	copied := *rec
	copied.Checkpoints = slices.Clone(rec.Checkpoints)
	return &copied, nil
}

// change changes an entry of the index of a tenant's run.
func (s *Server) change(t *user, run, id string, f func(*runRecord, int) error) error {
	if _, err := s.findRecord(t, run); err != nil {
		return err
	}
	s.mu.Lock()
	r := s.runs[run]
	s.mu.Unlock()
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		return s.changeRecord(&r.record, id, f)
	}
	defer s.creating.Lock(t.name)()
	rec, err := s.findRecord(t, run) // a copy: others read the record without a lock
	if err != nil {
		return err
	}
	if err := s.changeRecord(rec, id, f); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[run] = rec
	return nil
}

// changeRecord changes an entry of a record, and stores it.
func (s *Server) changeRecord(rec *runRecord, id string, f func(*runRecord, int) error) error {
	at := slices.IndexFunc(rec.Checkpoints, func(c checkpoint) bool { return c.ID == id && c.Weights != "" })
	if at < 0 {
		return failf(http.StatusNotFound, "training run %.100q has no checkpoint %.200q", rec.ID, id)
	}
	before := slices.Clone(rec.Checkpoints)
	if err := f(rec, at); err != nil {
		return err
	}
	if err := s.store.WriteJSON(rec, kindRuns, rec.Name+".json"); err != nil {
		rec.Checkpoints = before
		return err
	}
	return nil
}

func (s *Server) deleteWeights(ctx context.Context, t *user, run, id string) error {
	rec, err := s.findRecord(t, run)
	if err != nil {
		return err
	}
	saved, size := "", int64(0)
	err = s.change(t, run, id, func(rec *runRecord, at int) error {
		saved, size = rec.Checkpoints[at].Saved, rec.Checkpoints[at].SizeBytes
		rec.Checkpoints = slices.Delete(rec.Checkpoints, at, at+1)
		return nil
	})
	if err != nil {
		return err
	}
	keeper, ok := s.backend.(loop.WeightsKeeper)
	if !ok {
		return fail(http.StatusNotImplemented, "the backend of this server cannot delete weights")
	}
	err = s.withModel(ctx, rec, func(m *art.Model) error { return keeper.DeleteWeights(ctx, m, saved) })
	if err == nil {
		t.stored.Add(-size)
	}
	return err
}

// withModel calls f with the model of a run, which is registered for it if its session has ended.
func (s *Server) withModel(ctx context.Context, rec *runRecord, f func(*art.Model) error) error {
	s.mu.Lock()
	r := s.runs[rec.ID]
	s.mu.Unlock()
	if r != nil {
		return r.use(ctx, f)
	}
	defer s.loading.Lock(rec.ID)() // a run is registered once at a time
	m := s.newModel(rec)
	if err := m.Register(ctx, s.backend); err != nil {
		return err
	}
	return errors.Join(f(m), m.Release(context.WithoutCancel(ctx)))
}

// use calls f with the model of a run once it is open.
func (r *run) use(ctx context.Context, f func(*art.Model) error) error {
	select {
	case <-r.opened:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.registering.RLock()
	defer r.registering.RUnlock()
	if r.model == nil {
		return fmt.Errorf("training run %s is not open; try again later", r.record.ID)
	}
	return f(r.model)
}
