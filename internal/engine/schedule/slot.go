package schedule

import "fmt"

// slot is a row of the batch and its part of the cache.
type slot struct {
	task     *Task   // nil when idle
	adapter  any     // that the cached tokens were computed with
	tokens   []int32 // known tokens: those in the cache, then those to compute next, which an idle slot has none of
	computed int     // how many of them are in the cache
	overrun  bool    // the cache holds more tokens, which no other task may see
	touched  int     // round of the last progress
	waited   int     // rounds since then
}

// cached returns the tokens whose keys and values are in the cache.
func (b *slot) cached() []int32 { return b.tokens[:b.computed] }

// pending returns the tokens to compute next.
func (b *slot) pending() []int32 { return b.tokens[b.computed:] }

// Computed records that the next n tokens of a slot are in the cache, and reports whether those are all, so that a
// token can be sampled.
func (s *Scheduler) Computed(slot, n int) (done bool) {
	b := &s.slots[slot]
	if n > len(b.pending()) {
		panic(fmt.Sprintf("schedule: %d tokens computed of %d", n, len(b.pending())))
	}
	b.computed += n
	b.touched, b.waited = s.round, 0
	return len(b.pending()) == 0
}

// Push records the token that was sampled after all others were computed. It is computed next.
func (s *Scheduler) Push(slot int, id int32) {
	b := &s.slots[slot]
	b.tokens = append(b.tokens, id)
}

// Room returns how many tokens the limit of a task allows after those that are computed and one more.
func (s *Scheduler) Room(slot int) int {
	b := &s.slots[slot]
	return b.task.Limit - b.computed - 1
}

// Overrun records that the device has cached tokens beyond those of a slot, as a decoding call does that goes on after
// a reply has ended. The next task clears them.
func (s *Scheduler) Overrun(slot int) { s.slots[slot].overrun = true }

// Finish makes a slot idle. It keeps what is in the cache.
func (s *Scheduler) Finish(slot int) {
	b := &s.slots[slot]
	b.task, b.tokens = nil, b.cached()
}

// Lost records that the cache is empty. Tasks that have a slot compute their tokens again.
func (s *Scheduler) Lost() {
	for i := range s.slots {
		b := &s.slots[i]
		if b.task == nil {
			b.tokens = nil
		} else {
			b.task.Reused = 0
		}
		b.computed, b.overrun = 0, false
	}
}
