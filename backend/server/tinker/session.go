package tinker

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goart-dev/art/backend/server/internal/tenancy"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// session is a client process.
type session struct {
	tenant  *tenant
	record  sessionRecord
	seen    time.Time
	storing sync.Mutex // held while its document is written or removed
}

// createSession serves POST create_session.
func (s *Server) createSession(w http.ResponseWriter, _ *http.Request, t *user, req *tinkerwire.Request) error {
	if err := t.limits.checkMetadata(req); err != nil {
		return err
	}
	project := cmp.Or(req.ProjectID, t.key.Project())
	if project != "" {
		if err := t.key.ReachesProject(project); err != nil {
			return err
		}
	}
	live := &session{tenant: t.tenant, seen: time.Now(), record: sessionRecord{
		ID: s.newID(), Tenant: t.name, Key: t.key.Key(), Created: time.Now().UTC(), Tags: req.Tags,
		Metadata: req.UserMetadata, DisplayName: req.DisplayName, Project: project,
	}}
	s.mu.Lock()
	if limit := t.limits.Sessions; s.liveSessions(t.tenant) >= limit {
		s.mu.Unlock()
		return failf(http.StatusForbidden, "there are %d sessions already; end one, or wait until it expires", limit)
	}
	s.sessions[live.record.ID] = live
	s.mu.Unlock()
	if err := s.storeSession(live); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sessions, live.record.ID)
		return err
	}
	return sendJSON(w, http.StatusOK, tinkerwire.Result{SessionID: live.record.ID, Type: "create_session"})
}

// liveSessions counts the sessions of a tenant. mu is held.
func (s *Server) liveSessions(t *tenant) (n int) {
	for _, live := range s.sessions {
		if live.tenant == t {
			n++
		}
	}
	return n
}

// liveRuns counts the runs of a tenant that are in memory. mu is held.
func (s *Server) liveRuns(t *tenant) (n int) {
	for _, r := range s.runs {
		if r.tenant == t {
			n++
		}
	}
	return n
}

// storeSession writes the document of a session as it is now. mu, for which all tenants wait, is not held meanwhile.
func (s *Server) storeSession(live *session) error {
	live.storing.Lock()
	defer live.storing.Unlock()
	s.mu.Lock()
	record := live.record
	record.Runs, record.Samplers = slices.Clone(record.Runs), slices.Clone(record.Samplers)
	ended := s.sessions[record.ID] != live
	s.mu.Unlock()
	if ended {
		return errEnded
	}
	return s.store.WriteJSON(&record, kindSessions, record.ID+".json")
}

// errEnded is the error of what needs a session.
var errEnded = fail(http.StatusGone, "the session has ended; create a new one")

// findSession returns a live session of a tenant.
func (s *Server) findSession(t *user, id string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.sessions[id]
	if live == nil || live.tenant != t.tenant {
		return nil, failf(http.StatusGone, "session %.100q has ended, or never was; create a new one", id)
	}
	if err := live.visible(t.key); err != nil {
		return nil, err
	}
	live.seen = time.Now()
	return live, nil
}

// visible is an error for a key with limits that has not created the session.
func (live *session) visible(key *tenancy.Caller) error {
	if !key.Limited() || key.Key() == live.record.Key {
		return nil
	}
	return failf(http.StatusForbidden, "the key %q has limits, and session %s is of another key; create one with this key",
		key.Key(), live.record.ID)
}

// touch notes that a session is alive.
func (s *Server) touch(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if live := s.sessions[id]; live != nil {
		live.seen = time.Now()
	}
}

// heartbeat serves POST session_heartbeat.
func (s *Server) heartbeat(w http.ResponseWriter, _ *http.Request, t *user, req *tinkerwire.Request) error {
	if _, err := s.findSession(t, req.SessionID); err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, tinkerwire.Result{Type: "session_heartbeat"})
}

// finish serves POST sessions/ID/finish.
func (s *Server) finish(w http.ResponseWriter, r *http.Request, t *user) error {
	id := r.PathValue("id")
	switch _, err := s.findSession(t, id); {
	case statusOf(err) == http.StatusForbidden:
		return err
	case err != nil:
		return sendJSON(w, http.StatusOK, struct{}{}) // the first call has ended it
	}
	s.spawn("the end of a session", func() { s.endSession(id, "the client has ended the session") })
	return sendJSON(w, http.StatusOK, struct{}{})
}

// endSession releases what a session has in memory. Its runs stay on disk.
func (s *Server) endSession(id, why string) {
	s.mu.Lock()
	live := s.sessions[id]
	delete(s.sessions, id)
	s.mu.Unlock()
	if live == nil {
		return
	}
	for _, id := range live.record.Runs {
		s.mu.Lock()
		r := s.runs[id]
		s.mu.Unlock()
		if r != nil {
			s.releaseRun(r, why)
		}
	}
	for _, rec := range live.record.Samplers {
		s.mu.Lock()
		sm := s.samplers[rec.ID]
		delete(s.samplers, rec.ID)
		s.mu.Unlock()
		if sm != nil {
			sm.release(s, true)
		}
	}
	live.storing.Lock()
	defer live.storing.Unlock()
	if err := s.store.Remove(kindSessions, id+".json"); err != nil {
		s.log.Warn("session could not be removed", "session", id, "error", err)
	}
}

// releaseRun takes a run out of memory. why is "" when it goes on after a restart.
func (s *Server) releaseRun(r *run, why string) {
	r.release(why)
	r.mu.Lock()
	record := r.record
	if err := r.storeRecord(); err != nil {
		s.log.Error("training run could not be stored", "run", r.record.ID, "error", err)
	}
	r.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, record.ID)
	s.records[record.ID] = &record
}

// janitor ends abandoned sessions, drops old results and deletes expired weights, until the server is closed.
func (s *Server) janitor() {
	ticker := time.NewTicker(min(s.opts.SessionTimeout/4, 30*time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = s.protect("the janitor", func() error { s.clean(time.Now()); return nil }) // the panic is in the log
		case <-s.ctx.Done():
			return
		}
	}
}

// clean is one round of the janitor.
func (s *Server) clean(now time.Time) {
	var abandoned []string
	s.mu.Lock()
	for id, live := range s.sessions {
		if now.Sub(live.seen) > s.opts.SessionTimeout {
			abandoned = append(abandoned, id)
		}
	}
	for _, t := range s.tenants {
		for len(t.results) > 0 && now.Sub(t.results[0].ended) > s.opts.KeepResults {
			s.dropOldest(t)
		}
	}
	live := slices.Collect(maps.Values(s.runs))
	s.mu.Unlock()
	for _, r := range live {
		r.mu.Lock()
		r.dropResults()
		r.mu.Unlock()
	}
	for _, id := range abandoned {
		s.log.Info("session has expired", "session", id)
		s.endSession(id, "the session has expired, because its client sent no heartbeat")
	}
	s.deleteExpired()
	if err := s.store.WriteJSON(s.users.Usage(), usageFile); err != nil {
		s.log.Warn("usage could not be stored", "error", err)
	}
}

// deleteExpired deletes weights whose time is over.
func (s *Server) deleteExpired() {
	for _, t := range s.tenants {
		for _, rec := range s.tenantRecords(t.all()) {
			for i := range rec.Checkpoints {
				if c := &rec.Checkpoints[i]; c.expired() && c.Weights != "" {
					if err := s.deleteWeights(s.ctx, t.all(), rec.ID, c.ID); err != nil {
						s.log.Warn("expired weights could not be deleted", "path", c.Path, "error", err)
					}
				}
			}
		}
	}
}

// tenantRecords returns copies of the records of a tenant's runs, the newest first. It waits for no other tenant's.
func (s *Server) tenantRecords(t *user) (list []*runRecord) {
	var ids []string
	s.mu.Lock()
	for id, r := range s.runs {
		if r.tenant == t.tenant {
			ids = append(ids, id)
		}
	}
	for id, rec := range s.records {
		if rec.Tenant == t.name {
			ids = append(ids, id)
		}
	}
	s.mu.Unlock()
	for _, id := range ids {
		if rec, err := s.findRecord(t, id); err == nil {
			list = append(list, rec)
		}
	}
	slices.SortFunc(list, func(a, b *runRecord) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.ID, b.ID))
	})
	return slices.CompactFunc(list, func(a, b *runRecord) bool { return a.ID == b.ID })
}
