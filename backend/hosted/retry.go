package hosted

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/secret"
)

// retried are the statuses after which the same request may succeed. 520 to 524 are Cloudflare's, 529 is Anthropic's
// for an overload.
var retried = []int{408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}

// exhausted are the codes of a quota that does not come back by waiting.
var exhausted = []string{"insufficient_quota", "billing_hard_limit_reached", "billing_error"}

// attempts sends a call until it is answered or another attempt does not help.
func (b *Backend) attempts(ctx context.Context, c *call) (*Reply, error) {
	for n := 0; ; n++ {
		reply, err := b.attempt(ctx, c)
		if err == nil {
			return reply, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		wait, again := b.again(err, n)
		if !again {
			return nil, err
		}
		b.meter.count(&c.entry.usage, 0, func(u *Usage) { u.Retries++ })
		b.opts.Logger.Warn("the request is sent again",
			"model", c.base, "attempt", n+1, "wait", wait, "err", b.shortened(err.Error()))
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// again reports whether a failed attempt, the n-th from 0, is repeated, and after which wait.
func (b *Backend) again(err error, n int) (wait time.Duration, again bool) {
	if n >= b.opts.Retries || !passing(err) {
		return 0, false
	}
	if failure := new(Failure); errors.As(err, &failure) {
		if wait, ok := retryAfter(failure.Header, time.Now()); ok {
			return wait, wait <= b.opts.MaxWait
		}
	}
	backoff := b.opts.Backoff << min(n, 30)
	if backoff <= 0 || backoff > b.opts.MaxWait { // overflow, or beyond the bound
		backoff = b.opts.MaxWait
	}
	return backoff/2 + rand.N(backoff/2+1), true
}

// passing reports whether an error may pass.
func passing(err error) bool {
	failure := new(Failure)
	if !errors.As(err, &failure) {
		var refused *secret.RedirectError
		return !errors.As(err, &refused) && !errors.Is(err, errTooLarge) && !errors.As(err, new(*art.Error))
	}
	switch {
	case failure.tooLong(), slices.Contains(exhausted, failure.Code):
		return false
	case failure.Header.Get("X-Should-Retry") != "":
		return failure.Header.Get("X-Should-Retry") == "true"
	}
	return failure.Torn || slices.Contains(retried, failure.Status)
}

// retryAfter returns what a server asks to wait, in the header retry-after-ms, or Retry-After as seconds or as a
// date.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return seconds(ms / 1e3), true
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		return seconds(s), true
	}
	if at, err := http.ParseTime(text); err == nil {
		if theirs, err := http.ParseTime(h.Get("Date")); err == nil {
			now = theirs // one of the clocks may be wrong
		}
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

// seconds converts to a duration of at most a day, 0 for what is negative or no number.
func seconds(s float64) time.Duration {
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, 24*60*60) * float64(time.Second))
}
