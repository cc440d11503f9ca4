package tinker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// rowSeq is the metric of a training row that has the seq_id of its update. After a restart it says which requests the
// newest step contains.
const rowSeq = "tinker/seq_id"

// open registers the model. Requests that are part of its newest step are not executed again.
func (r *run) open(ctx context.Context) error {
	m := r.server.newModel(&r.record)
	if err := m.Register(ctx, r.server.backend); err != nil {
		return err
	}
	r.model, r.at, r.covered, r.row = m, fmt.Sprintf("@%d", m.Step()), -1, map[string]float64{}
	keeper, ok := r.server.backend.(driver.CheckpointKeeper)
	if !ok || m.Step() == 0 {
		return nil
	}
	rows, err := keeper.History(ctx, m)
	if err != nil {
		return err
	}
	if seq, ok := art.Logged(rows, rowSeq, m.Step()-1); ok {
		r.covered = int(seq)
	}
	return nil
}

// newModel describes the model of a run.
func (s *Server) newModel(rec *runRecord) *art.Model {
	opts := &art.ModelOptions{Project: rec.Tenant, Base: s.base(rec.Base).Model, LoRA: rec.LoRA, Seed: rec.Seed}
	if _, keeps := s.backend.(driver.CheckpointKeeper); keeps {
		opts.Retention = &art.Retention{Newest: s.opts.KeepSteps}
	}
	return art.NewModel(rec.Name, opts)
}

// perform executes an operation in its turn, or returns what it has returned before a restart.
func (r *run) perform(ctx context.Context, t *task) *outcome {
	switch {
	case t.prior != nil && (t.prior.Err != "" || !t.call.changes()):
		return t.prior
	case t.seq <= r.covered && t.prior != nil:
		return t.prior
	case t.seq == r.covered && t.call.op == opOptim:
		// The update was stored just before the server stopped.
		rows, err := r.server.backend.(driver.CheckpointKeeper).History(ctx, r.model) // open has used it
		if err != nil {
			return r.server.failed("the result of an update", err)
		}
		metrics := map[string]float64{}
		for _, row := range rows {
			if row.Split == "train" && row.Step == r.model.Step()-1 {
				maps.Copy(metrics, row.Metrics)
			}
		}
		delete(metrics, rowSeq)
		return &outcome{Result: &tinkerwire.Result{Metrics: metrics}}
	case t.seq <= r.covered:
		return failed(errors.New("the result was lost when the server stopped; its effect is part of the stored step"))
	case r.broken != nil:
		return failed(fmt.Errorf("the run cannot be continued, load saved weights into a new one: %w", r.broken))
	}
	r.mu.Lock()
	begun := r.begun[t.seq]
	r.mu.Unlock()
	if begun >= tenancy.MaxAttempts {
		return r.failed(t, tenancy.ErrAttempts)
	}
	var out *outcome
	var err error
	seconds, slotErr := r.server.training.do(ctx, r.tenant.name, r.record.ID, func() { out, err = r.attempt(ctx, t) })
	r.charge(access.Usage{Seconds: seconds})
	if err = errors.Join(slotErr, err); err != nil {
		return r.failed(t, err)
	}
	return out
}

// failed makes an outcome of an error. A run whose client knows that the operation has succeeded cannot be continued.
func (r *run) failed(t *task, err error) *outcome {
	if t.prior != nil && r.server.ctx.Err() == nil {
		r.broken = err
	}
	return r.server.failed(futureID(r.record.ID, t.seq)+" "+t.call.op, err)
}

// charge adds to what the key has used that created the run.
func (r *run) charge(u access.Usage) { r.server.users.Charge(r.tenant.name, r.record.Key, u) }

func (r *run) execute(ctx context.Context, t *task) (*outcome, error) {
	req := t.call.small
	switch t.call.op {
	case opCreate:
		return &outcome{Result: &tinkerwire.Result{ModelID: r.record.ID, Type: opCreate}}, nil
	case opForward, opBackward:
		return r.forward(ctx, t.call)
	case opOptim:
		return r.optimStep(ctx, t.seq, req)
	case opSave:
		return r.save(ctx, t, tinkerwire.WeightsKind)
	case opExternal:
		if len(req.Recipients) > 0 {
			return nil, fail(http.StatusBadRequest, "age_encryption_recipients are not supported; leave them out")
		}
		return r.save(ctx, t, tinkerwire.ExternalKind)
	case opSampler:
		if req.Path == "" {
			// A sampler of the weights as they are now.
			if req.SamplingSessionSeqID == nil {
				return nil, fail(http.StatusBadRequest, "save_weights_for_sampler has neither path nor sampling_session_seq_id")
			}
			model, err := r.model.Snapshot(ctx, "")
			if err != nil {
				return nil, err
			}
			id := samplerID(r.record.Session, *req.SamplingSessionSeqID)
			rec := samplerRecord{ID: id, Base: r.record.Base, Project: r.record.Project, Run: r.record.ID, Path: r.at}
			if err := r.server.addSampler(r.tenant, r.record.Session, rec, model); err != nil {
				return nil, errors.Join(err, model.Release(ctx))
			}
			return &outcome{Result: &tinkerwire.Result{SamplingSessionID: id, Type: opSampler}}, nil
		}
		return r.save(ctx, t, tinkerwire.SamplerKind)
	case opLoad:
		rec, saved, err := r.server.findWeights(r.tenant.all(), req.Path)
		if err != nil {
			return nil, err
		}
		if own := &r.record; rec.Base != own.Base || rec.LoRA.Rank != own.LoRA.Rank ||
			!slices.Equal(rec.LoRA.Targets, own.LoRA.Targets) {
			return nil, failf(http.StatusBadRequest, "the weights are of rank %d on base model %q, and this model is of rank "+
				"%d on %q; create a model that fits them", rec.LoRA.Rank, rec.Base, own.LoRA.Rank, own.Base)
		}
		if err := loop.LoadWeights(ctx, r.model, saved.Weights, req.LoadOptimizer); err != nil {
			return nil, err
		}
		r.at, r.row = saved.Weights, map[string]float64{}
		return &outcome{Result: &tinkerwire.Result{Path: req.Path, ModelID: r.record.ID, Type: opLoad}}, nil
	}
	return nil, fmt.Errorf("operation %q is not known", t.call.op)
}

// forward runs a forward pass, with gradients or without.
func (r *run) forward(ctx context.Context, c *call) (*outcome, error) {
	req, err := parseForward(c.op, c.media, c.record[len(c.op)+len(c.media)+2:], &r.tenant.limits)
	if err != nil {
		return nil, err
	}
	data, tokens, err := convertData(req, &r.tenant.limits)
	if err != nil {
		return nil, err
	}
	req.Data = nil // what it decoded to is not needed beside data
	pass := loop.Forward
	if c.op == opBackward {
		pass = loop.ForwardBackward
	}
	loss, config := credit.Loss(req.Loss), loop.LossConfig(req.Config)
	result, err := pass(ctx, r.model, data, loss, config)
	if err != nil {
		return nil, err
	}
	r.charge(access.Usage{TrainedTokens: int64(tokens)})
	out := output(data, result, req)
	if c.op == opBackward {
		r.row["loss/sum"] += result.Loss
		r.row["data/datums"] += float64(len(data))
		r.row["data/tokens"] += float64(tokens)
	}
	return &outcome{Forward: out.Proto()}, nil
}

// optimStep updates the weights and stores them as a step of the run.
func (r *run) optimStep(ctx context.Context, seq int, req *tinkerwire.Request) (*outcome, error) {
	adam, p := loop.DefaultAdamW(), req.Adam
	if p == nil {
		p = req.OptimizerParams
	}
	if p == nil {
		return nil, fail(http.StatusBadRequest, "optim_step has no adam_params")
	}
	if p.Type != "" && p.Type != tinkerwire.AdamW {
		return nil, failf(http.StatusBadRequest, "the optimizer %.40q is not supported, only adamw", p.Type)
	}
	for _, option := range []struct{ from, to *float64 }{
		{p.LearningRate, &adam.LearningRate}, {p.Beta1, &adam.Beta1}, {p.Beta2, &adam.Beta2}, {p.Eps, &adam.Eps},
		{p.WeightDecay, &adam.WeightDecay}, {p.GradClipNorm, &adam.GradClipNorm},
	} {
		if option.from != nil {
			*option.to = *option.from
		}
	}
	result, err := loop.OptimStep(ctx, r.model, adam)
	if err != nil {
		r.outdated(err)
		return nil, err
	}
	metrics := map[string]float64{"grad_norm": result.GradNorm, "learning_rate": adam.LearningRate, "skipped": 0}
	if result.Skipped {
		metrics["skipped"] = 1
	}
	maps.DeleteFunc(metrics, notFinite)
	for key, x := range metrics {
		r.row["optim/"+key] = x
	}
	r.row[rowSeq] = float64(seq)
	step, err := r.model.Publish(ctx, nil, r.row)
	if err != nil {
		r.outdated(err) // the weights are one update ahead of what is stored
		return nil, err
	}
	r.at, r.covered, r.row, r.applied = fmt.Sprintf("@%d", step), seq, map[string]float64{}, nil
	return &outcome{Result: &tinkerwire.Result{Metrics: metrics}}, nil
}

// storeRecord writes the record of the run. mu is held.
func (r *run) storeRecord() error {
	return r.server.store.WriteJSON(&r.record, kindRuns, r.name+".json")
}

// attempt executes an operation when it is the run's turn. The journal has that it was begun, so that one that ends the
// process is not begun again and again. After a panic it has failed as after an error.
func (r *run) attempt(ctx context.Context, t *task) (out *outcome, err error) {
	r.mu.Lock()
	again := r.begun[t.seq] > 0 || t.restored
	r.append(tenancy.RecordBegun, t.seq, again) // a kill leaves what was written; only a crash of the machine needs a sync
	r.mu.Unlock()
	err = r.server.protect(t.call.op, func() (err error) {
		if err = r.rewind(ctx); err == nil {
			out, err = r.execute(ctx, t)
		}
		return err
	})
	if tenancy.IsPanic(err) && (t.call.changes() || t.call.op == opOptim) {
		r.outdated(err)
	}
	if err == nil && t.call.op == opLoad {
		r.applied = nil // of what was before nothing is left
	}
	if err == nil && t.call.changes() && t.call.op != opCreate { // which changes nothing that is trained
		r.applied = append(r.applied, t.seq)
	}
	return out, err
}

// append writes down how far an operation is. It is executed also where that cannot be stored. mu is held.
func (r *run) append(kind byte, seq int, sync bool) {
	if err := r.journal.Append(tenancy.Record{Kind: kind, Seq: seq}, sync); err != nil {
		r.server.log.Warn("attempt could not be stored", "run", r.record.ID, "seq_id", seq, "error", err)
	}
}

// outdated notes that an operation has changed the training state, and has failed.
func (r *run) outdated(err error) {
	r.stale = true
	r.setCorrupted(tenancy.Public(err))
}

// setCorrupted sets what clients are told of the state of the run.
func (r *run) setCorrupted(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Corrupted = why
}

// rewind makes the training state again of the newest stored step and of the operations that have succeeded since, when
// one has failed in between.
func (r *run) rewind(ctx context.Context) error {
	if !r.stale {
		return nil
	}
	calls, err := r.appliedCalls()
	if err != nil {
		return fmt.Errorf("the operations since the newest step cannot be read: %w", err)
	}
	if err := r.reopen(ctx); err != nil {
		return err
	}
	for i, seq := range r.applied {
		if seq <= r.covered {
			continue // the update has failed only after it was stored
		}
		if _, err := r.execute(ctx, &task{seq: seq, call: calls[i]}); err != nil {
			return fmt.Errorf("seq_id %d cannot be repeated: %w", seq, err)
		}
	}
	r.stale = false
	r.setCorrupted("")
	return nil
}

// reopen registers the model again, at the newest stored step.
func (r *run) reopen(ctx context.Context) error {
	r.registering.Lock()
	defer r.registering.Unlock()
	if r.model != nil {
		if err := r.model.Release(ctx); err != nil {
			return err
		}
		r.model = nil
	}
	return r.open(ctx)
}

// appliedCalls reads the operations that have changed the training state since the newest stored step.
func (r *run) appliedCalls() ([]*call, error) {
	r.mu.Lock()
	records, err := r.journal.Read()
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	bodies := map[int][]byte{}
	for _, rec := range records {
		if rec.Kind == tenancy.RecordRequest {
			bodies[rec.Seq] = rec.Body
		}
	}
	var calls []*call
	for _, seq := range r.applied {
		body, ok := bodies[seq]
		if !ok {
			return nil, errors.New("the journal lacks one of them")
		}
		c, err := decodeCall(body)
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
	}
	return calls, nil
}
