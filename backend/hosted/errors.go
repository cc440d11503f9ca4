package hosted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/secret"
)

// timeoutError is the cause of an attempt that took too long.
type timeoutError struct{ after time.Duration }

// Error says how long it took.
func (e *timeoutError) Error() string { return fmt.Sprintf("no answer within %v", e.after) }

// Is makes it a [context.DeadlineExceeded].
func (e *timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// failed translates the error of a call into one of art. Secrets are removed from its text.
func (b *Backend) failed(ctx context.Context, c *call, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if known := new(art.Error); errors.As(err, &known) {
		return err
	}
	failure := new(Failure)
	if !errors.As(err, &failure) {
		text := b.shortened(err.Error())
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			err := fmt.Errorf("%w: %w: %s", ErrService, context.DeadlineExceeded, text)
			return &art.Error{Op: "complete", Err: err, Hint: "raise Timeout of the Options"}
		case errors.Is(err, errTooLarge):
			err := fmt.Errorf("%w: %s: %s", ErrService, b.about.Name, text)
			return &art.Error{Op: "complete", Err: err, Hint: "set MaxTokens, or ask for fewer logprobs"}
		}
		err := fmt.Errorf("%w: %s: %s", ErrService, b.about.Name, text)
		return &art.Error{Op: "complete", Err: err, Hint: "check BaseURL of the Options, and that the server runs"}
	}
	failure = &Failure{
		Status: failure.Status, Code: failure.Code, Header: failure.Header, Torn: failure.Torn,
		Message: b.shortened(failure.Message),
	}
	hint, kind := b.judge(ctx, c, failure)
	return &art.Error{Op: "complete", Err: fmt.Errorf("%w: %w", kind, named{failure, b.about.Name}), Hint: hint}
}

// named is a failure whose text says who failed, and with which status.
type named struct {
	*Failure
	service string
}

// Error returns the message behind the service and the status.
func (n named) Error() string {
	return fmt.Sprintf("%s, status %d: %s", n.service, n.Status, cmp.Or(n.Message, http.StatusText(n.Status)))
}

// Unwrap returns the failure.
func (n named) Unwrap() error { return n.Failure }

// judge says what to do about a failure, and what kind of error it is.
func (b *Backend) judge(ctx context.Context, c *call, f *Failure) (hint string, kind error) {
	switch {
	case f.tooLong():
		return "send fewer or shorter messages, or lower MaxTokens", art.ErrContextLength
	case f.Status == http.StatusUnauthorized, f.Status == http.StatusForbidden:
		return keyHint(&b.about, b.about.KeyVariables[b.host()]), art.ErrInvalid
	case f.Status == http.StatusPaymentRequired, slices.Contains(exhausted, f.Code):
		return "the account has no credit or quota left", ErrService
	case f.Status == http.StatusNotFound:
		return b.missing(ctx, c.base), art.ErrInvalid
	case f.Status == http.StatusTooManyRequests:
		return "lower MaxConcurrent, or set RequestsPerMinute or TokensPerMinute of the Options", ErrService
	case f.Status == http.StatusOK:
		hint := "check that BaseURL of the Options is that of the API"
		if kind := f.Header.Get("Content-Type"); !strings.Contains(kind, "json") {
			hint += fmt.Sprintf(": its answer is of type %q", kind)
		}
		return hint, ErrService
	case f.Status >= http.StatusInternalServerError:
		return "the service is at fault; try later", ErrService
	}
	return "the service refuses the request: correct what it names", art.ErrInvalid
}

const maxNamed = 20

// missing is the hint for a model that the service does not know: which it has, if it says so.
func (b *Backend) missing(ctx context.Context, base string) string {
	ctx, cancel := context.WithTimeout(ctx, min(b.opts.Timeout, 10*time.Second))
	defer cancel()
	models, err := b.service.Models(ctx)
	if err != nil || len(models) == 0 {
		return fmt.Sprintf("check the name of the model at the service, which is %q, and BaseURL of the Options", base)
	}
	slices.Sort(models)
	list := strings.Join(models[:min(len(models), maxNamed)], ", ")
	if more := len(models) - maxNamed; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("set ModelOptions.Base: %q was asked for, and the service has %s", base, b.shortened(list))
}

// shortened returns at most 2 KiB of a text, without secrets.
func (b *Backend) shortened(text string) string {
	const longest = 2 << 10
	text = strings.TrimSpace(secret.Hide(text, b.secrets))
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

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
		return !errors.As(err, new(*secret.RedirectError)) && !errors.Is(err, errTooLarge) && !errors.As(err, new(*art.Error))
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
