package art

import (
	"context"
	"errors"
	"time"
)

// grace is how long code that was handed a context may take to return once the context has ended. After that it is left
// behind.
const grace = time.Second

var (
	errGoexit    = errors.New("called runtime.Goexit, as testing.T.FailNow does: return an error instead")
	errAbandoned = errors.New("did not return after its context had ended, and was left behind")
)

// outcome is how code of the user ended.
type outcome[T any] struct {
	value T
	err   error
	late  bool // the context had ended before it returned
}

// guard calls f on a goroutine of its own, where a panic or runtime.Goexit ends nothing else: they become errors. When
// ctx ends and f does not return within [grace], f is left behind and what it returns later is dropped.
func guard[T any](ctx context.Context, f func() (T, error)) outcome[T] {
	done := make(chan outcome[T], 1)
	go func() { protect(ctx, f, done) }()
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case o := <-done:
		return o
	case <-timer.C:
		return outcome[T]{err: errAbandoned, late: true}
	}
}

// protect sends how f ended, however that was.
func protect[T any](ctx context.Context, f func() (T, error), done chan<- outcome[T]) {
	o := outcome[T]{err: errGoexit}
	defer func() {
		if r := recover(); r != nil {
			o.err = newPanicError(r)
		}
		o.late = ctx.Err() != nil
		done <- o
	}()
	o.value, o.err = f()
}
