package tinker

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goart-dev/art/internal/tinkerwire"
)

// page reads limit and offset of a list of n.
func page(r *http.Request, n, limit int) (from, to int, c tinkerwire.Cursor) {
	number := func(key string, fallback int) int {
		if x, err := strconv.Atoi(r.URL.Query().Get(key)); err == nil && x >= 0 {
			return x
		}
		return fallback
	}
	c = tinkerwire.Cursor{Offset: number("offset", 0), Limit: number("limit", limit), Total: n}
	from = min(c.Offset, n)
	return from, from + min(c.Limit, n-from), c
}

// showSampler serves GET samplers/ID.
func (s *Server) showSampler(w http.ResponseWriter, r *http.Request, t *user) error {
	sm, err := s.findSampler(t, r.PathValue("id"))
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, tinkerwire.SamplerInfo{
		ID: sm.record.ID, BaseModel: sm.record.Base, ModelPath: sm.record.Tinker,
	})
}

// trainingRun describes a run to clients.
func trainingRun(rec *runRecord) tinkerwire.TrainingRun {
	out := tinkerwire.TrainingRun{
		ID: rec.ID, BaseModel: rec.Base, Owner: rec.Tenant, IsLoRA: true, Corrupted: rec.Corrupted != "",
		Rank: rec.LoRA.Rank, LastRequest: rec.LastRequest.UTC(), UserMetadata: rec.Metadata,
	}
	for i := range rec.Checkpoints {
		switch c := &rec.Checkpoints[i]; {
		case c.Weights == "" || c.expired():
		case c.Type == tinkerwire.Training:
			out.Last = &c.Checkpoint
		case c.Type == tinkerwire.Sampler:
			out.LastSampler = &c.Checkpoint
		}
	}
	return out
}

// listRuns serves GET training_runs.
func (s *Server) listRuns(w http.ResponseWriter, r *http.Request, t *user) error {
	all := s.tenantRecords(t)
	from, to, cursor := page(r, len(all), 20)
	list := []tinkerwire.TrainingRun{}
	for _, rec := range all[from:to] {
		list = append(list, trainingRun(rec))
	}
	return sendJSON(w, http.StatusOK, map[string]any{"training_runs": list, "cursor": cursor})
}

// showRun serves GET training_runs/ID.
func (s *Server) showRun(w http.ResponseWriter, r *http.Request, t *user) error {
	rec, err := s.findRecord(t, r.PathValue("id"))
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, trainingRun(rec))
}

// checkpoints lists what a run has saved.
func (rec *runRecord) checkpoints() []tinkerwire.Checkpoint {
	list := []tinkerwire.Checkpoint{}
	for i := range rec.Checkpoints {
		if c := &rec.Checkpoints[i]; c.Weights != "" && !c.expired() {
			list = append(list, c.Checkpoint)
		}
	}
	return list
}

// listCheckpoints serves GET training_runs/ID/checkpoints.
func (s *Server) listCheckpoints(w http.ResponseWriter, r *http.Request, t *user) error {
	rec, err := s.findRecord(t, r.PathValue("id"))
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, map[string]any{"checkpoints": rec.checkpoints()})
}

// listAllCheckpoints serves GET checkpoints, the newest first.
func (s *Server) listAllCheckpoints(w http.ResponseWriter, r *http.Request, t *user) error {
	all := []tinkerwire.Checkpoint{}
	for _, rec := range s.tenantRecords(t) {
		all = append(all, rec.checkpoints()...)
	}
	slices.SortStableFunc(all, func(a, b tinkerwire.Checkpoint) int { return b.Time.Compare(a.Time) })
	from, to, cursor := page(r, len(all), 100)
	return sendJSON(w, http.StatusOK, map[string]any{"checkpoints": all[from:to], "cursor": cursor})
}

// checkpointOf is the id of the checkpoint in a path.
func checkpointOf(r *http.Request) string { return r.PathValue("kind") + "/" + r.PathValue("name") }

// deleteCheckpoint serves DELETE training_runs/ID/checkpoints/KIND/NAME.
func (s *Server) deleteCheckpoint(w http.ResponseWriter, r *http.Request, t *user) error {
	if err := s.deleteWeights(r.Context(), t, r.PathValue("id"), checkpointOf(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// setTTL serves PUT training_runs/ID/checkpoints/KIND/NAME/ttl.
func (s *Server) setTTL(w http.ResponseWriter, r *http.Request, t *user) error {
	var req tinkerwire.Request
	if err := s.readJSON(w, r, &req); err != nil {
		return err
	}
	if ttl := req.TTLSeconds; ttl != nil && (*ttl < 3600 || *ttl > 10*366*24*3600) {
		return failf(http.StatusBadRequest, "ttl_seconds is %v, want an hour to ten years, or null", *ttl)
	}
	err := s.change(t, r.PathValue("id"), checkpointOf(r), func(rec *runRecord, at int) error {
		rec.Checkpoints[at].ExpiresAt = expiry(req.TTLSeconds)
		return nil
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// weightsInfo serves POST weights_info.
func (s *Server) weightsInfo(w http.ResponseWriter, r *http.Request, t *user) error {
	var req tinkerwire.Request
	if err := s.readJSON(w, r, &req); err != nil {
		return err
	}
	rec, _, err := s.findWeights(t, req.TinkerPath)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, tinkerwire.WeightsInfo{
		BaseModel: rec.Base, IsLoRA: true, Rank: rec.LoRA.Rank, TrainUnembed: new(false), TrainMLP: &rec.MLP,
		TrainAttn: &rec.Attention, Optimizer: &tinkerwire.Optimizer{Type: tinkerwire.AdamW},
	})
}

// listSessions serves GET sessions.
func (s *Server) listSessions(w http.ResponseWriter, r *http.Request, t *user) error {
	s.mu.Lock()
	list := []*sessionRecord{}
	for _, live := range s.sessions {
		if live.tenant == t.tenant && live.visible(t.key) == nil {
			list = append(list, &live.record)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b *sessionRecord) int { return b.Created.Compare(a.Created) })
	ids := []string{}
	from, to, _ := page(r, len(list), 20)
	for _, rec := range list[from:to] {
		ids = append(ids, rec.ID)
	}
	return sendJSON(w, http.StatusOK, map[string]any{"sessions": ids})
}

// showSession serves GET sessions/ID.
func (s *Server) showSession(w http.ResponseWriter, r *http.Request, t *user) error {
	live, err := s.findSession(t, r.PathValue("id"))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	samplers, runs := []string{}, append([]string{}, live.record.Runs...)
	for _, sm := range live.record.Samplers {
		samplers = append(samplers, sm.ID)
	}
	return sendJSON(w, http.StatusOK, map[string]any{
		"training_run_ids": runs, "sampler_ids": samplers, "user_metadata": live.record.Metadata,
		"display_name": live.record.DisplayName,
	})
}

// baseURL is the address under which a client has reached the server.
func baseURL(r *http.Request) string {
	scheme := "http://"
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https://"
	}
	return scheme + r.Host
}

// linkTime is how long the address of a download is valid.
const linkTime = time.Hour
