package art

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// maxBackoff bounds the pause between two tries.
const maxBackoff = 30 * time.Second

var errNoTrajectory = errors.New("rollout returned neither a trajectory nor an error")

// attempt runs one rollout with its retries. ok is false when ctx ended before it had a result.
func (g *gathering) attempt(ctx context.Context, rollout *RolloutStart) (c cell, ok bool) {
	scenario, attempt := rollout.Scenario, rollout.Attempt
	for try := 0; ; try++ {
		at := &position{seed: g.seed, group: scenario, attempt: attempt, try: try, rollout: rollout}
		t, err := g.try(ctx, at)
		if err == nil {
			return cell{trajectory: t}, true
		}
		if ctx.Err() != nil {
			return cell{}, false
		}
		if try == g.opts.Retries || permanent(err) {
			return failedCell(scenario, attempt, try+1, err), true
		}
		if !sleep(ctx, g.pause(at)) {
			return cell{}, false
		}
	}
}

// try runs a rollout once.
func (g *gathering) try(ctx context.Context, at *position) (*Trajectory, error) {
	timed, cancel := ctx, context.CancelFunc(func() {})
	if g.opts.Timeout > 0 {
		timed, cancel = context.WithTimeout(ctx, g.opts.Timeout)
	}
	defer cancel()
	timed, refused := withRefusal(withPosition(timed, at))
	start := time.Now().UTC().Round(0)
	o := guard(timed, func() (*Trajectory, error) { return g.rollout(timed, at.group) })
	if o.late && ctx.Err() == nil {
		return nil, g.timeoutError(o.err)
	}
	if o.err != nil {
		return nil, refused.explained(o.err)
	}
	if o.value == nil {
		return nil, errNoTrajectory
	}
	finish(o.value, start)
	return o.value, nil
}

// timeoutError says that a try took too long. err is what the rollout returned, if it did.
func (g *gathering) timeoutError(err error) error {
	switch {
	case err == nil:
		err = context.DeadlineExceeded
	case !errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return fmt.Errorf("rollout did not return within %v: %w", g.opts.Timeout, err)
}

// finish sets the duration of t unless it is set. start is used when t has no start.
func finish(t *Trajectory, start time.Time) {
	if t.Duration != 0 {
		return
	}
	if t.Start.IsZero() {
		t.Start, t.began = start, start
	}
	t.Finish()
}

// permanent reports whether a retry cannot help.
func permanent(err error) bool {
	for _, target := range []error{ErrNotRegistered, ErrClosed, ErrFrozen, ErrUnsupported} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// pause returns how long to wait after the try at p:
//
//	min(30 s, Backoff 2^try) (1 - u/2), u uniform in [0, 1) by the seed
func (g *gathering) pause(p *position) time.Duration {
	d := maxBackoff
	if p.try < 32 && g.opts.Backoff < maxBackoff>>p.try {
		d = g.opts.Backoff << p.try
	}
	u := float64(mix(seedBackoff, p.id())>>11) / (1 << 53)
	return time.Duration(float64(d) * (1 - u/2))
}

// sleep waits for d. It returns false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// failedCell describes a rollout that failed after the given number of tries.
func failedCell(scenario, attempt, tries int, err error) cell {
	f := &Failure{Scenario: scenario, Attempt: attempt, Tries: tries, Type: errorType(err), Message: err.Error()}
	var p *panicError
	if errors.As(err, &p) {
		f.Type, f.Stack = "panic", p.stack()
	}
	return cell{failure: f, err: err}
}

// errorType names the Go type of err below what fmt.Errorf wrapped around it.
func errorType(err error) string {
	for {
		name := fmt.Sprintf("%T", err)
		inner := errors.Unwrap(err)
		if name != "*fmt.wrapError" || inner == nil {
			return name
		}
		err = inner
	}
}

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
