package hosted

import (
	"context"
	"sync"
	"time"
)

// period is the time over which rates are bounded.
const period = time.Minute

// window bounds the requests and tokens of any period. Those that wait are let through in the order of their arrival.
type window struct {
	requests, tokens int           // bounds; 0 is none
	turn             chan struct{} // held by the first that waits

	mu   sync.Mutex
	sent []*sending // within the last period, in order of time
}

// sending is one request of a window.
type sending struct {
	at     time.Time
	tokens int
}

func newWindow(requests, tokens int) window {
	return window{requests: requests, tokens: tokens, turn: make(chan struct{}, 1)}
}

// enter waits until a request of so many tokens fits.
func (w *window) enter(ctx context.Context, tokens int) (*sending, error) {
	if w.requests == 0 && w.tokens == 0 {
		return &sending{}, nil
	}
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for {
		s, wait := w.admit(time.Now(), tokens)
		if s != nil {
			return s, nil
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// admit notes a request if it fits, and otherwise returns how long to wait before the next try.
func (w *window) admit(now time.Time, tokens int) (*sending, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.sent) > 0 && now.Sub(w.sent[0].at) >= period {
		w.sent = w.sent[1:]
	}
	sum := tokens
	for _, s := range w.sent {
		sum += s.tokens
	}
	full := w.requests > 0 && len(w.sent) >= w.requests || w.tokens > 0 && sum > w.tokens
	if full && len(w.sent) > 0 {
		return nil, period - now.Sub(w.sent[0].at)
	}
	s := &sending{now, tokens}
	w.sent = append(w.sent, s)
	return s, 0
}

// settle replaces the estimate of a request by what it took.
func (w *window) settle(s *sending, tokens int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.tokens = tokens
}

// sleep waits, or returns the cause when ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
