package art

import (
	"context"
	"errors"
	"sync"
)

// CaptureYield runs f and returns the trajectory that code below it hands out with [Yield], however deep in the call
// stack: for agents whose functions cannot return one. f has to hand on the context that it is given.
//
// The trajectory is returned also when f fails, with f's error. When f succeeds without a Yield the error is an
// [ErrNothingRecorded].
func CaptureYield(ctx context.Context, f func(ctx context.Context) error) (*Trajectory, error) {
	c := &capture{}
	err := f(context.WithValue(ctx, captureKey{}, c))
	t := c.close()
	if err == nil && t == nil {
		err = &Error{"capture yield", ErrNothingRecorded, "call art.Yield with the context that the function is given"}
	}
	return t, err
}

// Yield hands t to the innermost [CaptureYield] that ctx comes from. It is an [ErrInvalid] without one, after it has
// ended, for a nil trajectory, and for a second trajectory.
func Yield(ctx context.Context, t *Trajectory) error {
	c, ok := ctx.Value(captureKey{}).(*capture)
	err := errors.New("the context does not come from CaptureYield")
	if ok {
		err = c.take(t)
	}
	if err == nil {
		return nil
	}
	return problems{err.Error()}.err("yield", "yield one trajectory within CaptureYield, with its context")
}

// captureKey is the context key of a *capture.
type captureKey struct{}

// capture holds what was yielded.
type capture struct {
	mu     sync.Mutex
	closed bool
	t      *Trajectory
}

func (c *capture) take(t *Trajectory) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case t == nil:
		return errors.New("the trajectory is nil")
	case c.closed:
		return errors.New("CaptureYield has returned")
	case c.t != nil:
		return errors.New("a trajectory was yielded already")
	}
	c.t = t
	return nil
}

func (c *capture) close() *Trajectory {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.t
}
