package engine

import (
	"context"
	"slices"
	"time"

	"github.com/goart-dev/art/model"
)

// linger is how long the loop waits for further requests before it computes prompts. Agents that got their replies in
// one round ask again within microseconds; to compute them together is worth the wait.
const linger = time.Millisecond

// patience is the number of rounds after which a slot is served before larger classes.
const patience = 8

// loop is the state of the goroutine that owns the device.
type loop struct {
	*Engine
	slots   []slot
	waiting []*job // for a slot, in order of arrival
	round   int
}

func (e *Engine) loop() {
	l := &loop{Engine: e, slots: make([]slot, e.opts.Slots)}
	defer close(e.done)
	defer l.abort()
	for l.receive() {
		l.admit()
		if c, ok := l.choose(); ok {
			l.run(c)
		}
	}
}

// receive takes new jobs: it waits for one when there is nothing else to do, lingers before prompts, and otherwise takes
// what is there. It reports false when the engine is closed.
func (l *loop) receive() bool {
	select {
	case <-l.quit: // also when all slots are taken
		return false
	default:
	}
	if l.idle() {
		select {
		case j := <-l.queue:
			l.waiting = append(l.waiting, j)
		case <-l.quit:
			return false
		}
	}
	for l.free() > len(l.waiting) {
		wait := time.Duration(0)
		if len(l.waiting) > 0 || l.prompts() {
			wait = linger
		}
		select {
		case j := <-l.queue:
			l.waiting = append(l.waiting, j)
		case <-l.quit:
			return false
		case <-time.After(wait):
			return true
		}
	}
	return true
}

func (l *loop) idle() bool {
	for i := range l.slots {
		if l.slots[i].job != nil {
			return false
		}
	}
	return len(l.waiting) == 0
}

func (l *loop) free() int {
	n := 0
	for i := range l.slots {
		if l.slots[i].job == nil {
			n++
		}
	}
	return n
}

// prompts reports whether a slot is still computing its prompt.
func (l *loop) prompts() bool {
	for i := range l.slots {
		if s := &l.slots[i]; s.job != nil && len(s.todo) > 1 {
			return true
		}
	}
	return false
}

// admit drops jobs whose callers are gone and places those that wait.
func (l *loop) admit() {
	for i := range l.slots {
		if s := &l.slots[i]; s.job != nil && s.job.ctx.Err() != nil {
			l.finish(s, context.Cause(s.job.ctx))
		}
	}
	for len(l.waiting) > 0 {
		j := l.waiting[0]
		if j.ctx.Err() == nil && !l.place(j) {
			return
		}
		l.waiting = l.waiting[1:]
	}
}

// class is a set of slots that one graph can serve.
type class struct {
	adapter *Adapter
	width   int // tokens of each slot, padded
}

// choose returns the class that most slots belong to, or that of a slot that has waited too long.
func (l *loop) choose() (class, bool) {
	count := map[class]int{}
	var best class
	for i := range l.slots {
		s := &l.slots[i]
		if s.job == nil {
			continue
		}
		c := l.class(s)
		if s.waited >= patience {
			return c, true
		}
		if l.loops(c) && l.prompts() {
			continue // first all prompts: a call of many steps takes all slots that it can
		}
		count[c]++
		if n := count[c]; n > count[best] || n == count[best] && c.width < best.width {
			best = c
		}
	}
	return best, count[best] > 0
}

func (l *loop) class(s *slot) class { return class{s.adapter, bucket(l.runner.buckets, len(s.todo))} }

// loops reports whether a class is served by calls of many steps.
func (l *loop) loops(c class) bool { return c.width == 1 && l.opts.DecodeSteps > 1 }

// run computes one round for a class.
func (l *loop) run(c class) {
	l.round++
	var members []int
	for i := range l.slots {
		s := &l.slots[i]
		if s.job == nil {
			continue
		}
		s.waited++
		if l.class(s) == c {
			members = append(members, i)
		}
	}
	if l.loops(c) {
		l.decode(c.adapter, members)
	} else {
		l.compute(c, members)
	}
}

// compute runs a graph of one step, and draws on the host.
func (l *loop) compute(c class, members []int) {
	var rows []row
	for _, i := range members {
		s := &l.slots[i]
		rows = append(rows, row{slot: i, tokens: s.todo[:min(len(s.todo), c.width)], start: len(s.cached)})
	}
	logprobs, err := l.runner.step(c, rows)
	if err != nil {
		l.forget()
	}
	v := l.opts.Config.VocabSize
	for i, r := range rows {
		var last []float32
		if err == nil {
			last = logprobs[i*v : (i+1)*v]
		}
		l.advance(&l.slots[r.slot], len(r.tokens), last, err)
	}
}

// decode runs a call of many steps, and goes through what it has drawn.
func (l *loop) decode(a *Adapter, members []int) {
	turns := make([]turn, len(l.slots))
	for _, i := range members {
		turns[i] = l.turn(&l.slots[i])
	}
	draws, err := l.runner.decode(a, turns)
	if err != nil {
		l.forget()
	}
	for _, i := range members {
		s := &l.slots[i]
		if err != nil {
			s.adapter = nil
			l.finish(s, err)
			continue
		}
		l.accept(s, draws[i])
	}
}

// turn asks for the next tokens of a slot.
func (l *loop) turn(s *slot) turn {
	j := s.job
	t := turn{token: s.todo[0], start: len(s.cached), ends: j.End, sampling: j.Sampling}
	t.left = min(l.opts.DecodeSteps, l.opts.Context-t.start-1)
	if j.MaxTokens > 0 {
		t.left = min(t.left, j.MaxTokens-len(j.result.IDs))
	}
	for n := range t.left {
		t.uniform = append(t.uniform, model.Uniform(j.Seed, len(j.result.IDs)+n))
	}
	return t
}

// accept takes the tokens that a call has drawn, up to one that ends the reply.
func (l *loop) accept(s *slot, draws []draw) {
	s.touched, s.waited = l.round, 0
	for n, d := range draws {
		s.cached = append(s.cached, s.todo[0])
		s.todo[0] = d.id
		if l.take(s, d) {
			s.beyond = n+1 < len(draws)
			return
		}
	}
}

// take takes the token that was drawn after what is cached, and reports whether that ended the reply.
func (l *loop) take(s *slot, d draw) bool {
	err := checkFinite(len(s.job.result.IDs), d.logprob)
	if err == nil && !s.job.accept(d.id, d.logprob, d.sampled, l.opts.Context-len(s.cached)-1) {
		return false
	}
	l.finish(s, err)
	return true
}

// forget empties the cache: a round that fails has lost it. What other slots had there, they compute again.
func (l *loop) forget() {
	for i := range l.slots {
		s := &l.slots[i]
		if s.job != nil {
			s.todo = slices.Concat(s.cached, s.todo)
			s.job.result.Cached = 0
		}
		s.cached, s.beyond = nil, false
	}
	// Should this fail, the next round does.
	_ = l.runner.cache.clear(l.opts.Config.NumLayers)
}

// advance takes the outcome of a round for one slot: n tokens were computed, and lp are the logprobs after the last.
func (l *loop) advance(s *slot, n int, lp []float32, err error) {
	if err != nil {
		s.adapter = nil
		l.finish(s, err)
		return
	}
	s.cached = append(s.cached, s.todo[:n]...)
	s.todo = s.todo[n:]
	s.touched, s.waited = l.round, 0
	if len(s.todo) > 0 {
		return
	}
	j := s.job
	id, sampled := model.Sample(lp, j.Sampling, j.Seed, len(j.result.IDs))
	if !l.take(s, draw{id, lp[id], sampled}) {
		s.todo = append(s.todo[:0], id)
	}
}

// finish answers the job of a slot. The slot keeps its cache.
func (l *loop) finish(s *slot, err error) {
	o := outcome{err: err}
	if err == nil {
		o.result = &s.job.result
	}
	s.job.reply <- o
	s.job, s.todo = nil, nil
}

// abort answers everything that is left when the engine is closed.
func (l *loop) abort() {
	for i := range l.slots {
		if s := &l.slots[i]; s.job != nil {
			l.finish(s, ErrClosed)
		}
	}
	for _, j := range l.waiting {
		j.reply <- outcome{err: ErrClosed}
	}
}
