package art

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// slots bound the rollouts that run at once in several gathers, and measure how many do.
type slots struct {
	taken chan struct{} // full when no slot is free
	freed chan struct{} // has an element when a share may begin, see share.begin

	mu      sync.Mutex
	running int
	changed time.Time
	busy    time.Duration // sum over the rollouts of how long they ran, since it was last taken
}

func newSlots(n int) *slots {
	return &slots{taken: make(chan struct{}, n), freed: make(chan struct{}, 1), changed: time.Now()}
}

// free reports whether a slot is free.
func (s *slots) free() bool { return len(s.taken) < cap(s.taken) }

// count adds to the rollouts that run.
func (s *slots) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measure()
	s.running += n
}

// measure brings busy up to now. s.mu is held.
func (s *slots) measure() {
	now := time.Now()
	s.busy += time.Duration(s.running) * now.Sub(s.changed)
	s.changed = now
}

// take returns how long rollouts ran since the last call, all together.
func (s *slots) take() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measure()
	busy := s.busy
	s.busy = 0
	return busy
}

// notify says that a share may begin.
func (s *slots) notify() {
	select {
	case s.freed <- struct{}{}:
	default: // it is said already
	}
}

// share is the use of slots by one gather. A nil *share has no bound.
type share struct {
	slots   *slots
	waiting atomic.Int64 // rollouts that have not got a slot yet
}

// newShare returns the share of a gather of so many rollouts.
func newShare(s *slots, rollouts int) *share {
	h := &share{slots: s}
	h.waiting.Store(int64(rollouts))
	return h
}

// acquire waits for a slot. It returns false when ctx ends first.
func (h *share) acquire(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	if h == nil {
		return true
	}
	select {
	case h.slots.taken <- struct{}{}:
		h.slots.count(1)
		if h.waiting.Add(-1) == 0 {
			h.slots.notify()
		}
		return true
	case <-ctx.Done():
		return false
	}
}

func (h *share) release() {
	if h != nil {
		h.slots.count(-1)
		<-h.slots.taken
		h.slots.notify()
	}
}
