package tinker

import (
	"context"
	"errors"
	"fmt"

	"github.com/goart-dev/art/backend/server/internal/tenancy"
)

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

// note is append for who does not hold mu.
func (r *run) note(kind byte, seq int, sync bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.append(kind, seq, sync)
}

// append writes down how far an operation is. It is executed also where that cannot be stored. mu is held.
func (r *run) append(kind byte, seq int, sync bool) {
	if err := r.journal.Append(tenancy.Record{Kind: kind, Seq: seq}, sync); err != nil {
		r.server.log.Warn("attempt could not be stored", "run", r.record.ID, "seq_id", seq, "error", err)
	}
}

// exhausted is an error for an operation that was begun too often.
func (r *run) exhausted(t *task) error {
	r.mu.Lock()
	n := r.begun[t.seq]
	r.mu.Unlock()
	if n < tenancy.MaxAttempts {
		return nil
	}
	return tenancy.ErrAttempts
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
