package art

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// rolloutLimit bounds the rollouts that run at once in several gathers: a semaphore that measures how many do.
type rolloutLimit struct {
	slots chan struct{} // full when no slot is free
	freed chan struct{} // has an element when a slot has become free, or a queue has become empty

	mu      sync.Mutex
	running int
	changed time.Time
	busy    time.Duration // sum over the rollouts of how long they ran, since it was last taken
}

func newRolloutLimit(n int) *rolloutLimit {
	return &rolloutLimit{slots: make(chan struct{}, n), freed: make(chan struct{}, 1), changed: time.Now()}
}

func (l *rolloutLimit) free() bool { return len(l.slots) < cap(l.slots) }

func (l *rolloutLimit) count(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.measure()
	l.running += n
}

// measure brings busy up to now. l.mu is held.
func (l *rolloutLimit) measure() {
	now := time.Now()
	l.busy += time.Duration(l.running) * now.Sub(l.changed)
	l.changed = now
}

// takeBusy returns how long rollouts ran since the last call, all together.
func (l *rolloutLimit) takeBusy() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.measure()
	busy := l.busy
	l.busy = 0
	return busy
}

// notifyFreed says that something has changed for those who want to start rollouts.
func (l *rolloutLimit) notifyFreed() {
	select {
	case l.freed <- struct{}{}:
	default: // it is said already
	}
}

// rolloutQueue has the rollouts of one gather that wait for slots of a limit. A nil *rolloutQueue has no limit.
type rolloutQueue struct {
	limit  *rolloutLimit
	length atomic.Int64
}

// newRolloutQueue returns the queue of a gather of so many rollouts.
func newRolloutQueue(l *rolloutLimit, rollouts int) *rolloutQueue {
	q := &rolloutQueue{limit: l}
	q.length.Store(int64(rollouts))
	return q
}

// acquire waits for a slot. It returns false when ctx ends first.
func (q *rolloutQueue) acquire(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	if q == nil {
		return true
	}
	select {
	case q.limit.slots <- struct{}{}:
		q.limit.count(1)
		if q.length.Add(-1) == 0 {
			q.limit.notifyFreed()
		}
		return true
	case <-ctx.Done():
		return false
	}
}

func (q *rolloutQueue) release() {
	if q != nil {
		q.limit.count(-1)
		<-q.limit.slots
		q.limit.notifyFreed()
	}
}
