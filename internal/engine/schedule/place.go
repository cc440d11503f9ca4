package schedule

import "slices"

// Placement gives a slot to a task.
type Placement struct {
	Task *Task
	Slot int
	// Copy says that before the next round the first Task.Reused tokens of slot From must be copied to Slot, which may be
	// the same, and that the rest of Slot must be cleared. Without it the cache of Slot is as it should be.
	Copy bool
	From int
}

// Place gives a slot to the first task of the queue. It reports false if the queue is empty or no slot is idle.
func (s *Scheduler) Place() (p Placement, ok bool) {
	if len(s.waiting) == 0 {
		return p, false
	}
	t := s.waiting[0]
	donor, shared := s.longestPrefix(t)
	to := donor
	if donor < 0 || s.slots[donor].task != nil || shared < len(s.slots[donor].cached()) {
		if to = s.oldestIdle(); to < 0 {
			return p, false
		}
	}
	s.waiting[0], s.waiting = nil, s.waiting[1:]
	b := &s.slots[to]
	p = Placement{Task: t, Slot: to, From: donor, Copy: to != donor || shared < len(b.cached()) || b.overrun}
	if donor < 0 {
		p.From = to // nothing is copied, the slot is cleared
	}
	t.Reused = shared
	*b = slot{task: t, adapter: t.Adapter, tokens: slices.Clone(t.Prompt), computed: shared, touched: s.round}
	return p, true
}

// longestPrefix returns the slot that has the longest prefix of a prompt in the cache, and its length; -1 and 0 if
// there is none. The last token of the prompt is left out: it must be computed, for its logits. Among equals, an idle
// slot that the prompt continues is preferred.
func (s *Scheduler) longestPrefix(t *Task) (donor, shared int) {
	donor = -1
	for i := range s.slots {
		b := &s.slots[i]
		if b.adapter != t.Adapter {
			continue
		}
		n := commonPrefix(b.cached(), t.Prompt[:len(t.Prompt)-1])
		continues := b.task == nil && n == len(b.cached())
		if n > shared || n > 0 && n == shared && continues && s.slots[donor].task != nil {
			donor, shared = i, n
		}
	}
	return donor, shared
}

// oldestIdle returns the idle slot that was not used for the longest time, -1 if there is none.
func (s *Scheduler) oldestIdle() int {
	oldest := -1
	for i := range s.slots {
		if b := &s.slots[i]; b.task == nil && (oldest < 0 || b.touched < s.slots[oldest].touched) {
			oldest = i
		}
	}
	return oldest
}

// commonPrefix returns the length of the longest common prefix.
func commonPrefix(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
