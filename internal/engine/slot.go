package engine

// slot is a row of the batch and its part of the cache.
type slot struct {
	job     *job     // nil when idle
	adapter *Adapter // that the cache was computed with
	cached  []int32  // tokens whose keys and values are in the cache
	beyond  bool     // behind them lie others, which the next request must not see
	todo    []int32  // tokens to compute next
	touched int      // round of its last use
	waited  int      // rounds without progress
}

// place puts a job into an idle slot: the one that holds the longest beginning of its prompt, when that is all the
// slot holds; otherwise the one that was not used for the longest time, with what another slot can lend it. It reports
// false when no slot is idle.
func (l *loop) place(j *job) bool {
	donor, shared := l.longestPrefix(j)
	var s *slot
	if donor != nil && donor.job == nil && shared == len(donor.cached) {
		s = donor
	} else if s = l.oldestIdle(); s == nil {
		return false
	}
	if s != donor || shared < len(s.cached) || s.beyond {
		from := s
		if donor != nil {
			from = donor
		}
		if err := l.runner.cache.copyPrefix(l.index(from), l.index(s), shared); err != nil {
			l.forget()
			shared = 0
		}
		s.beyond = false
	}
	s.job, s.adapter = j, j.Adapter
	s.cached = append([]int32(nil), j.Prompt[:shared]...)
	s.todo = append([]int32(nil), j.Prompt[shared:]...)
	s.touched, s.waited = l.round, 0
	j.result.Cached = shared
	return true
}

// longestPrefix returns a slot that shares the longest beginning with the prompt, and its length. At least one token
// of the prompt stays to be computed: its logits are wanted. Among equals an idle slot that would be continued wins.
func (l *loop) longestPrefix(j *job) (*slot, int) {
	var best *slot
	most := 0
	for i := range l.slots {
		s := &l.slots[i]
		if s.adapter != j.Adapter {
			continue
		}
		n := commonPrefix(s.cached, j.Prompt[:len(j.Prompt)-1])
		continues := s.job == nil && n == len(s.cached)
		if n > most || n > 0 && n == most && continues && best.job != nil {
			best, most = s, n
		}
	}
	return best, most
}

func (l *loop) oldestIdle() *slot {
	var oldest *slot
	for i := range l.slots {
		if s := &l.slots[i]; s.job == nil && (oldest == nil || s.touched < oldest.touched) {
			oldest = s
		}
	}
	return oldest
}

func (l *loop) index(s *slot) int {
	for i := range l.slots {
		if &l.slots[i] == s {
			return i
		}
	}
	panic("engine: a slot of another loop")
}

func commonPrefix(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
