package tinker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// run is a training run in memory: a registered model, and a queue of operations that one goroutine executes in the
// order of their seq_id.
type run struct {
	server *Server
	tenant *tenant
	name   string

	mu      sync.Mutex
	record  runRecord
	next    int // the seq_id that is executed next
	waiting map[int]*task
	futures map[int]*future
	wake    chan struct{} // has room for one
	stop    chan struct{} // closed when the run is released
	stopped bool
	begun   map[int]int // how often operations were begun that have not ended
	journal *tenancy.Journal

	compacted int64 // length of the journal when it was shortened

	opened chan struct{} // closed when the model is registered, or cannot be
	ended  chan struct{} // closed when the goroutine has ended

	registering sync.RWMutex // held while model changes

	// Of the goroutine only; others read model with registering held.
	model   *art.Model
	at      string             // where the weights are stored: "@STEP" or saved weights
	covered int                // the last seq_id that is part of the newest stored step
	row     map[string]float64 // of what was trained since then
	applied []int              // the seq_ids that have changed the training state since then
	stale   bool               // the training state is not what these make of the newest stored step
	broken  error              // the run cannot be continued
}

// task is an operation that waits for its turn.
type task struct {
	seq     int
	call    *call
	future  *future
	arrived time.Time

	restored bool     // it came before a restart
	prior    *outcome // of an execution then
}

// futureID names the future of an operation.
func futureID(run string, seq int) string { return run + ":" + strconv.Itoa(seq) }

func (r *run) newFuture(id string) *future {
	return &future{
		id: id, tenant: r.tenant, scope: access.Train, project: r.record.Project, run: r.record.ID, session: r.record.Session,
		answer: &tinkerwire.Result{RequestID: id, ModelID: r.record.ID},
	}
}

// submit queues an operation, once, and returns its future.
func (r *run) submit(seq int, c *call) (*future, error) {
	f := r.newFuture(futureID(r.record.ID, seq))
	f.digest, f.cost = sha256.Sum256(c.record), queueEntry+int64(len(c.record))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return nil, fail(http.StatusGone, "the session of this model has ended; its saved weights can be loaded")
	}
	old, err := r.server.openFuture(f, seq <= r.next)
	if old != nil || err != nil {
		return old, err
	}
	if seq < r.next {
		r.server.dropFuture(f)
		return nil, failf(http.StatusGone, "the result of seq_id %d has been dropped; the next is %d", seq, r.next)
	}
	// Requests since the newest step cannot be dropped: they are executed again after a restart.
	limit := r.journalLimit()
	if isForward(c.op) && r.journal.Size()-r.compacted+int64(len(c.record)) > limit {
		r.server.dropFuture(f)
		return nil, failf(http.StatusForbidden, "the requests since the newest step of %s have more than %d bytes: call "+
			"optim_step, or create a model from saved weights", r.record.ID, limit)
	}
	if err := r.journal.Append(tenancy.Record{Kind: tenancy.RecordRequest, Seq: seq, Body: c.record}, true); err != nil {
		r.server.dropFuture(f)
		return nil, fmt.Errorf("the request could not be stored: %w", err)
	}
	r.record.LastRequest = time.Now()
	r.waiting[seq] = &task{seq: seq, call: c, future: f, arrived: time.Now()}
	r.futures[seq] = f
	select {
	case r.wake <- struct{}{}:
	default: // it is awake
	}
	return f, nil
}

// work executes operations until the run is released.
func (r *run) work() {
	defer close(r.ended)
	ctx := r.server.ctx
	if err := r.server.protect("the opening of a training run", func() error { return r.open(ctx) }); err != nil {
		r.broken = err
		r.server.log.Error("training run cannot be opened", "run", r.record.ID, "error", err)
	}
	close(r.opened)
	for {
		t := r.take()
		if t == nil {
			break
		}
		out := r.perform(ctx, t)
		if ctx.Err() != nil && out.Err != "" {
			r.mu.Lock()
			r.append(tenancy.RecordEnded, t.seq, false)
			r.mu.Unlock()
			break // it is executed again after a restart
		}
		r.finish(t, out)
	}
	if r.model == nil {
		return
	}
	err := r.server.protect("the release of a training run", func() error {
		return r.model.Release(context.WithoutCancel(ctx))
	})
	if err != nil && !errors.Is(err, art.ErrClosed) {
		r.server.log.Warn("training run could not be released", "run", r.record.ID, "error", err)
	}
}

// take waits for the next operation. It is nil when the run is released.
func (r *run) take() *task {
	for {
		t, wait := r.ready()
		if t != nil {
			return t
		}
		select {
		case <-r.wake:
		case <-time.After(wait):
		case <-r.stop:
			return nil
		}
	}
}

// ready returns the next operation if it is there, or how long to wait. Operations that have waited too long for one
// before them fail.
func (r *run) ready() (t *task, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.futures[r.next] != nil && r.waiting[r.next] == nil {
		r.next++ // it has failed already
	}
	if t = r.waiting[r.next]; t != nil {
		delete(r.waiting, r.next)
		return t, 0
	}
	wait = r.server.opts.GapTimeout
	for seq, t := range r.waiting {
		left := r.server.opts.GapTimeout - time.Since(t.arrived)
		if left > 0 {
			wait = min(wait, left)
			continue
		}
		delete(r.waiting, seq)
		err := failf(http.StatusBadRequest, "seq_id %d never arrived, and %d comes after it", r.next, seq)
		r.settle(t, failed(err))
	}
	return nil, wait
}

// finish stores the result of the operation that was executed.
func (r *run) finish(t *task, out *outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = t.seq + 1
	r.settle(t, out)
	if len(r.applied) == 0 && r.journal.Size()-r.compacted > min(maxJournal, r.journalLimit()/2) {
		if err := r.compact(); err != nil {
			r.server.log.Error("journal could not be shortened", "run", r.record.ID, "error", err)
		}
	}
}

// settle writes a result down and tells it. mu is held.
func (r *run) settle(t *task, out *outcome) {
	if t.prior != nil { // it was told before the restart
		r.append(tenancy.RecordEnded, t.seq, false)
		return
	}
	if err := r.journal.Append(encodeResult(t.seq, t.future, out), false); err != nil {
		r.server.log.Error("result could not be stored", "run", r.record.ID, "error", err)
	}
	r.server.complete(t.future, out)
}

// maxJournal is by how much a journal grows before it is shortened, if it can be, in bytes.
const maxJournal = 64 << 20

// storedResult is the body of a record of a result.
type storedResult struct {
	Digest []byte
	Ended  time.Time
	Out    *outcome
}

func encodeResult(seq int, f *future, out *outcome) tenancy.Record {
	body, err := json.Marshal(storedResult{f.digest[:], time.Now(), out})
	if err != nil { // a number that is not finite
		body, _ = json.Marshal(storedResult{f.digest[:], time.Now(), failed(err)}) // texts can always be encoded
	}
	return tenancy.Record{Kind: tenancy.RecordResult, Seq: seq, Body: body}
}

// compact drops requests that are part of a stored step, and results that need not be read any more. mu is held.
func (r *run) compact() error {
	r.dropResults()
	records := []tenancy.Record{{Kind: tenancy.RecordBase, Seq: r.next}}
	for seq, f := range r.futures {
		select {
		case <-f.done:
			records = append(records, encodeResult(seq, f, f.out))
		default:
		}
	}
	for seq, t := range r.waiting {
		records = append(records, tenancy.Record{Kind: tenancy.RecordRequest, Seq: seq, Body: t.call.record})
		for range r.begun[seq] {
			records = append(records, tenancy.Record{Kind: tenancy.RecordBegun, Seq: seq})
		}
	}
	err := r.journal.Replace(records)
	r.compacted = r.journal.Size()
	return err
}

// journalLimit is by how much the journal of a run may grow before it is shortened: four queues of its tenant.
func (r *run) journalLimit() int64 { return 4 * r.tenant.limits.QueuedBytes }

// restore fills the queue from the records of a journal.
func (r *run) restore(records []tenancy.Record) error {
	results := map[int]*storedResult{}
	calls := map[int]*call{}
	for _, rec := range records {
		switch rec.Kind {
		case tenancy.RecordBase:
			r.next = rec.Seq
		case tenancy.RecordRequest:
			c, err := decodeCall(rec.Body)
			if err != nil {
				return err
			}
			calls[rec.Seq] = c
		case tenancy.RecordResult:
			stored := &storedResult{}
			if err := json.Unmarshal(rec.Body, stored); err != nil {
				return err
			}
			results[rec.Seq] = stored
			delete(r.begun, rec.Seq)
		case tenancy.RecordBegun:
			r.begun[rec.Seq]++
		case tenancy.RecordEnded:
			delete(r.begun, rec.Seq)
		default:
			return fmt.Errorf("the journal has a record of the kind %q, which a newer version has written", rec.Kind)
		}
	}
	for seq, c := range calls {
		if seq >= r.next {
			r.requeue(seq, c, results[seq])
		}
		delete(results, seq)
	}
	for seq, stored := range results {
		r.requeue(seq, nil, stored)
	}
	return nil
}

// requeue restores a future, and the operation if it may have to be executed again.
func (r *run) requeue(seq int, c *call, stored *storedResult) {
	f := r.newFuture(futureID(r.record.ID, seq))
	f.done = make(chan struct{})
	if c != nil {
		f.digest, f.cost = sha256.Sum256(c.record), queueEntry+int64(len(c.record))
	}
	if c != nil && (stored == nil || c.changes()) { // others are not executed again
		c.record = bytes.Clone(c.record) // it is a part of the whole file
		r.waiting[seq] = &task{seq: seq, call: c, future: f, arrived: time.Now(), restored: true}
	}
	r.futures[seq] = f
	s := r.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.futures[f.id] = f
	if stored == nil {
		f.tenant.mu.Lock()
		defer f.tenant.mu.Unlock()
		f.tenant.pending++
		f.tenant.queued.Add(f.cost)
		return
	}
	f.out, f.ended = stored.Out, stored.Ended
	close(f.done)
	f.tenant.add(f)
	copy(f.digest[:], stored.Digest)
	if t := r.waiting[seq]; t != nil {
		t.prior = stored.Out
	}
}

// release ends the goroutine, and fails what waits.
func (r *run) release(why string) {
	r.mu.Lock()
	if r.stopped {
		r.mu.Unlock()
		return
	}
	r.stopped = true
	close(r.stop)
	r.mu.Unlock()
	<-r.ended
	r.mu.Lock()
	defer r.mu.Unlock()
	if why != "" {
		for _, seq := range slices.Sorted(maps.Keys(r.waiting)) {
			r.settle(r.waiting[seq], failed(fail(http.StatusGone, why)))
		}
		clear(r.waiting)
	}
	if err := r.journal.Close(); err != nil {
		r.server.log.Warn("journal could not be closed", "run", r.record.ID, "error", err)
	}
}

// dropResults drops results that the server has dropped. mu is held.
func (r *run) dropResults() {
	for seq, f := range r.futures {
		r.server.mu.Lock()
		dropped := r.server.futures[f.id] == nil
		r.server.mu.Unlock()
		if seq < r.next && dropped {
			delete(r.futures, seq)
		}
	}
}
