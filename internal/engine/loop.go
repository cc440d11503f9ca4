package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/goart-dev/art/internal/engine/schedule"
	"github.com/goart-dev/art/internal/machine"
)

// queueDelay is how long the loop waits for further requests before it computes prompts. Agents that got their replies
// in one round send their next requests within microseconds; computing these together is worth the wait.
const queueDelay = time.Millisecond

// gcInterval is how often the loop looks for garbage.
const gcInterval = 100 * time.Millisecond

// loop is the state of the goroutine that owns the device. It carries out what the scheduler decides.
type loop struct {
	*Engine
	sched   *schedule.Scheduler
	jobs    map[*schedule.Task]*job // waiting or running
	scratch sync.Pool               // of *[]float32: scores of a row [V], where sampling changes them
	damaged []int32                 // blocks that hold numbers that are not finite
	totals  Totals
	looked  time.Time // for garbage
}

func (e *Engine) loop() {
	l := &loop{Engine: e, jobs: map[*schedule.Task]*job{}, sched: schedule.New(schedule.Options{
		Slots: e.opts.Slots, Blocks: e.runner.shapes.Blocks, Each: blockTokens, Widths: e.runner.shapes.Widths,
		Steps: e.opts.DecodeSteps, Budget: e.runner.shapes.Budget,
	})}
	defer close(e.done)
	defer l.abort()
	for l.receive() {
		l.admit()
		if r, ok := l.sched.Next(); ok {
			l.run(r)
			if now := time.Now(); now.Sub(l.looked) > gcInterval {
				l.looked = now
				machine.CollectGarbage()
			}
		}
		free, cached := l.sched.Blocks()
		l.stats.Store(&Stats{
			Running: l.opts.Slots - l.sched.Free(), Waiting: l.sched.Waiting(),
			Blocks: l.runner.shapes.Blocks - 1, Free: free, Cached: cached, Totals: l.totals, Stats: l.sched.Stats(),
		})
	}
}

// receive takes new requests: it waits for one if there is nothing to do, for more before prompts, and otherwise takes
// those that have arrived. It reports false if the engine is closed.
func (l *loop) receive() bool {
	select {
	case <-l.quit: // also if no slot is free
		return false
	case task := <-l.tasks:
		task(l)
		return true
	default:
	}
	if l.sched.Idle() {
		select {
		case j := <-l.queue:
			l.submit(j)
		case task := <-l.tasks:
			task(l)
			return true
		case <-l.quit:
			return false
		}
	}
	for l.sched.Waiting() < l.opts.Slots { // the others wait for the loop
		wait := time.Duration(0)
		if l.sched.Free() > l.sched.Waiting() && (l.sched.Waiting() > 0 || l.sched.Prefilling()) {
			wait = queueDelay
		}
		select {
		case j := <-l.queue:
			l.submit(j)
		case <-l.quit:
			return false
		case <-time.After(wait):
			return true
		}
	}
	return true
}

// submit hands a request to the scheduler.
func (l *loop) submit(j *job) {
	l.jobs[&j.task] = j
	l.sched.Submit(&j.task)
}

// admit drops requests whose callers have gone, and starts those that get a slot.
func (l *loop) admit() {
	if l.runner.cache.layers == nil { // clearing it has failed too
		l.lost()
	}
	l.sched.Running(func(slot int, t *schedule.Task) {
		if ctx := l.jobs[t].ctx; ctx.Err() != nil {
			l.finish(slot, t, context.Cause(ctx))
		}
	})
	l.sched.Drop(func(t *schedule.Task) bool {
		gone := l.jobs[t].ctx.Err() != nil
		if gone {
			l.forget(t)
		}
		return gone
	})
	for {
		p, ok := l.sched.Place()
		if !ok {
			return
		}
		if p.Copy && l.runner.copyBlock(p.From, p.To) != nil {
			l.lost()
		}
	}
}

// run computes a round. If it fails its requests are answered with the error, and the others begin anew.
func (l *loop) run(r schedule.Round) {
	adapter := l.jobs[r.Rows[0].Task].Adapter
	l.totals.Rounds++
	for _, row := range r.Rows {
		if len(row.Tokens) > 1 || len(l.jobs[row.Task].result.IDs) == 0 {
			l.totals.Prefilled += len(row.Tokens)
		}
	}
	var err error
	if r.Decode {
		err = l.decode(adapter, r.Rows)
	} else {
		err = l.compute(adapter, r)
	}
	if err != nil {
		for _, row := range r.Rows {
			l.finish(row.Slot, row.Task, err)
		}
	}
	for _, block := range l.damaged {
		if err == nil {
			err = l.runner.copyBlock(0, block)
		}
	}
	if l.damaged = l.damaged[:0]; err != nil {
		l.lost()
	}
}

// compute runs a graph of one step, and samples on the host.
func (l *loop) compute(a *Adapter, r schedule.Round) error {
	var masked sync.WaitGroup // masks are computed beside the device
	for _, row := range r.Rows {
		if m := l.jobs[row.Task].mask; m != nil {
			masked.Go(m.compute)
		}
	}
	scores, err := l.runner.step(a, r)
	masked.Wait()
	if err != nil {
		return err
	}
	for _, c := range l.choices(r.Rows, scores) {
		l.accept(c.row, c.token, c.err)
	}
	return nil
}

// choice is a token that was sampled for a row, or the error of sampling it.
type choice struct {
	row   schedule.Row
	token Token
	err   error
}

// choices samples the next token of each row that has none left to compute, several at once: one takes a millisecond of
// a vocabulary of 50,000.
func (l *loop) choices(rows []schedule.Row, s scores) []*choice {
	var list []*choice
	var all sync.WaitGroup
	for i, row := range rows {
		if !l.sched.Computed(row.Slot, len(row.Tokens)) {
			continue
		}
		c, j := &choice{row: row}, l.jobs[row.Task]
		list = append(list, c)
		all.Go(func() {
			scratch, _ := l.scratch.Get().(*[]float32)
			if scratch == nil {
				scratch = new([]float32)
			}
			lp, normalizer := s.row(i, l.opts.Config.VocabSize)
			c.token, c.err = j.choose(lp, normalizer, scratch)
			l.scratch.Put(scratch)
		})
	}
	all.Wait()
	return list
}

// decode runs a call of many steps, and accepts what it has sampled, up to the token that ends a reply.
func (l *loop) decode(a *Adapter, rows []schedule.Row) error {
	var calls []decodeCall
	for _, row := range rows {
		calls = append(calls, l.jobs[row.Task].call(row))
	}
	samples, err := l.runner.decode(a, calls)
	if err != nil {
		return err
	}
	l.totals.Steps += samples.steps
	if samples.shared {
		l.totals.Shared += samples.steps
	}
	for i, row := range rows {
		for _, s := range samples.tokens[i] {
			l.sched.Computed(row.Slot, 1)
			if l.accept(row, s, nil) {
				break
			}
		}
	}
	return nil
}

// accept takes a sampled token, or the error of sampling it, and reports whether it ends the reply.
func (l *loop) accept(row schedule.Row, t Token, err error) (done bool) {
	j := l.jobs[row.Task]
	if err == nil {
		err = checkFinite(len(j.result.IDs), t.Logprob)
	}
	if err == nil {
		done, err = j.accept(t, l.sched.Room(row.Slot))
		l.totals.Sampled++
	}
	if err == nil {
		j.feed.push(t)
	}
	if err == nil && !done {
		l.sched.Push(row.Slot, t.ID)
		return false
	}
	l.finish(row.Slot, row.Task, err)
	return true
}

// lost clears the cache, which a failed graph has lost. Requests that run compute their tokens again.
func (l *loop) lost() {
	l.sched.Lost()
	_ = l.runner.cache.clear(l.opts.Config.NumLayers) // if this fails so does the next round
}

// finish answers a request that runs.
func (l *loop) finish(slot int, t *schedule.Task, err error) {
	j := l.jobs[t]
	o := outcome{err: err}
	if err == nil {
		j.result.Cached = t.Reused
		o.result = &j.result
	}
	j.reply <- o
	l.forget(t)
	if errors.Is(err, ErrNotFinite) {
		l.damaged = append(l.damaged, l.sched.Discard(slot)...)
		return
	}
	l.sched.Finish(slot)
}

// forget ends the job of a task.
func (l *loop) forget(t *schedule.Task) {
	delete(l.jobs, t)
	l.inside.Add(-1)
}

// abort answers all requests when the engine is closed.
func (l *loop) abort() {
	for _, j := range l.jobs {
		j.reply <- outcome{err: ErrClosed}
		l.inside.Add(-1)
	}
}
