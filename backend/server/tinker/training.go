package tinker

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// operate queues an operation and answers with its future.
func (s *Server) operate(w http.ResponseWriter, r *http.Request, t *user, op string) error {
	limit := int64(maxSmall)
	if isForward(op) {
		limit = t.limits.body(s.opts.MaxBody)
	}
	body, err := s.readBody(w, r, limit)
	if err != nil {
		return err
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if media != tinkerwire.ProtoType {
		media = tinkerwire.JSONType
	}
	c, err := parseCall(op, media, body, &t.limits)
	if err != nil {
		return err
	}
	if c.small != nil {
		if err := t.limits.checkMetadata(c.small); err != nil {
			return err
		}
		if slices.Contains([]string{opSave, opSampler, opExternal}, c.op) && c.small.Path != "" {
			if err := t.mayStore(0); err != nil {
				return err
			}
		}
	}
	var live *run
	if c.small != nil && c.small.SessionID != "" && c.run == "" {
		live, err = s.create(t, c.small)
		c.seq = 0
	} else if live, err = s.findRun(t, c.run); err == nil && c.seq < 1 {
		err = failf(http.StatusBadRequest, "seq_id is %d, want 1 or more", c.seq)
	}
	if err != nil {
		return err
	}
	if c.op == opLoad && t.key.Limited() {
		// Refuse weights that the key does not cover. Others that cannot be loaded fail in their turn.
		if _, _, err := s.findWeights(t, c.small.Path); statusOf(err) == http.StatusForbidden {
			return err
		}
	}
	f, err := live.submit(c.seq, c)
	if err != nil {
		return err
	}
	s.touch(f.session)
	return sendJSON(w, http.StatusOK, f.answer)
}

// findRun returns a run of a tenant that is in memory.
func (s *Server) findRun(t *user, id string) (*run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[id]; r != nil && r.tenant == t.tenant {
		return r, t.key.Reaches(r.record.Project, id)
	}
	if rec := s.records[id]; rec != nil && rec.Tenant == t.name {
		if err := t.key.Reaches(rec.Project, id); err != nil {
			return nil, err
		}
		if rec.Corrupted != "" {
			return nil, failf(http.StatusGone, "%s cannot be continued, create a model from its saved weights: %s", id,
				rec.Corrupted)
		}
		return nil, failf(http.StatusGone, "the session of %s has ended; create a model from its saved weights", id)
	}
	return nil, failf(http.StatusNotFound, "there is no model %.100q", id)
}

// create makes the run of create_model, or of load_weights without a model.
func (s *Server) create(t *user, req *tinkerwire.Request) (*run, error) {
	live, err := s.findSession(t, req.SessionID)
	if err != nil {
		return nil, err
	}
	if req.ModelSeqID == nil || *req.ModelSeqID < 0 {
		return nil, fail(http.StatusBadRequest, "model_seq_id is missing or negative")
	}
	id := fmt.Sprintf("%s:train:%d", req.SessionID, *req.ModelSeqID)
	if r, err := s.findRun(t, id); statusOf(err) != http.StatusNotFound {
		return r, err // the request is repeated, or the run has ended
	}
	if err := t.key.Reaches(live.record.Project, ""); err != nil {
		return nil, err
	}
	rec, err := s.describeRun(t, req)
	if err != nil {
		return nil, err
	}
	rec.ID, rec.Name = id, fmt.Sprintf("%s-%d", req.SessionID, *req.ModelSeqID)
	rec.Tenant, rec.Session, rec.Metadata = t.name, req.SessionID, req.UserMetadata
	rec.Key, rec.Project = t.key.Key(), live.record.Project
	rec.Created = time.Now().UTC()
	rec.LastRequest = rec.Created
	defer s.creating.Lock(t.name)() // the same request may arrive twice at once
	s.mu.Lock()
	n, existing := s.liveRuns(t.tenant), s.runs[rec.ID]
	s.mu.Unlock()
	if existing != nil {
		return existing, nil
	}
	if n >= t.limits.Runs {
		return nil, failf(http.StatusForbidden, "there are %d training runs in memory already; end a session", n)
	}
	if err := s.store.WriteJSON(rec, kindRuns, rec.Name+".json"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	live.record.Runs = append(live.record.Runs, rec.ID)
	s.mu.Unlock()
	if err := s.storeSession(live); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		live.record.Runs = slices.DeleteFunc(live.record.Runs, func(id string) bool { return id == rec.ID })
		return nil, err
	}
	return s.startRun(t.tenant, rec)
}

// describeRun says which model a request wants.
func (s *Server) describeRun(t *user, req *tinkerwire.Request) (*runRecord, error) {
	if req.Optimizer != nil && req.Optimizer.Type != "" && req.Optimizer.Type != tinkerwire.AdamW {
		return nil, failf(http.StatusBadRequest, "the optimizer %.40q is not supported, only adamw", req.Optimizer.Type)
	}
	if req.Path != "" {
		from, _, err := s.findWeights(t, req.Path)
		if err != nil {
			return nil, err
		}
		if req.BaseModel != "" && req.BaseModel != from.Base {
			return nil, failf(http.StatusBadRequest, "%.200q has base model %q, not %.100q", req.Path, from.Base, req.BaseModel)
		}
		return &runRecord{Base: from.Base, LoRA: from.LoRA, MLP: from.MLP, Attention: from.Attention, Seed: from.Seed}, nil
	}
	if s.base(req.BaseModel).Name == "" {
		return nil, unknownBase(req.BaseModel, s.opts.Bases)
	}
	rec := &runRecord{Base: req.BaseModel, MLP: true, Attention: true, LoRA: art.LoRA{Rank: 32, Alpha: s.opts.Alpha}}
	c := req.LoRA // train_unembed is accepted, but heads have no adapters
	if c == nil {
		return rec, nil
	}
	if c.Rank < 1 || c.Rank > maxRank {
		return nil, failf(http.StatusBadRequest, "the rank of lora_config is %d, want 1 to %d", c.Rank, maxRank)
	}
	rec.LoRA.Rank = c.Rank
	if c.Seed != nil {
		rec.Seed = uint64(*c.Seed)
	}
	rec.MLP = c.TrainMLP == nil || *c.TrainMLP
	rec.Attention = c.TrainAttn == nil || *c.TrainAttn
	switch {
	case !rec.MLP && !rec.Attention:
		return nil, fail(http.StatusBadRequest, "lora_config trains neither attention nor MLP, and the head has no adapter")
	case !rec.MLP:
		rec.LoRA.Targets = []string{"q_proj", "k_proj", "v_proj", "o_proj"}
	case !rec.Attention:
		rec.LoRA.Targets = []string{"gate_proj", "up_proj", "down_proj"}
	}
	return rec, nil
}

// maxRank bounds the rank of adapters.
const maxRank = 512

// unknownBase is the error of a base model that is not served.
func unknownBase(name string, bases []Base) error {
	var names []string
	for _, b := range bases {
		names = append(names, b.Name)
	}
	return failf(http.StatusBadRequest, "there is no base model %.100q; there is %s", name, strings.Join(names, ", "))
}

// info serves POST get_info.
func (s *Server) info(w http.ResponseWriter, _ *http.Request, t *user, req *tinkerwire.Request) error {
	live, err := s.findRun(t, req.ModelID)
	if err != nil {
		return err
	}
	rec, err := s.findRecord(t, live.record.ID)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, tinkerwire.ModelInfo{
		ModelID: rec.ID, IsLoRA: true, Rank: rec.LoRA.Rank, ModelName: rec.Base, Type: "get_info",
		Optimizer: &tinkerwire.Optimizer{Type: tinkerwire.AdamW},
		Data:      tinkerwire.ModelData{ModelName: rec.Base, TokenizerID: s.base(rec.Base).Tokenizer},
	})
}

// unload serves POST unload_model.
func (s *Server) unload(w http.ResponseWriter, _ *http.Request, t *user, req *tinkerwire.Request) error {
	live, err := s.findRun(t, req.ModelID)
	if err != nil {
		return err
	}
	f := live.newFuture(req.ModelID + ":unload")
	old, err := s.openFuture(f, true)
	if err != nil {
		return err
	}
	if old != nil {
		return sendJSON(w, http.StatusOK, old.answer)
	}
	s.spawnFuture("the end of a training run", f, func() *outcome {
		s.releaseRun(live, "the model has been unloaded")
		return &outcome{Result: &tinkerwire.Result{ModelID: req.ModelID, Type: "unload_model"}}
	})
	return sendJSON(w, http.StatusOK, f.answer)
}
