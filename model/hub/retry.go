package hub

import (
	"context"
	"errors"
	"time"
)

// tries bounds the attempts of a request without progress.
const tries = 5

// firstPause is the time before the second attempt; it doubles each time. Tests shorten it.
var firstPause = time.Second

// temporaryError is a failure that may go away.
type temporaryError struct{ error }

func (e temporaryError) Unwrap() error { return e.error }

func temporary(err error) error { return temporaryError{err} }

// retry repeats a request while it fails with a temporary error.
func (c *client) retry(ctx context.Context, request func() error) error {
	return c.retryWhile(ctx, request, func() bool { return false })
}

// retryWhile is retry with a count that progress resets.
func (c *client) retryWhile(ctx context.Context, request func() error, progressed func() bool) error {
	pause := firstPause
	for try := 1; ; try++ {
		err := request()
		if !errors.As(err, new(temporaryError)) {
			return err
		}
		if progressed() {
			try, pause = 1, firstPause
		}
		if try == tries {
			return err
		}
		if c.Retry != nil {
			c.Retry(Retry{Err: err, Pause: pause, Try: try, Tries: tries})
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pause):
			pause *= 2
		}
	}
}
