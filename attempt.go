package art

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

const maxBackoff = 30 * time.Second

var errNoTrajectory = errors.New("rollout returned neither a trajectory nor an error")

// attempt runs one rollout with its retries. ok is false when ctx ended before it had a result.
func (g *gathering) attempt(ctx context.Context, rollout *RolloutStart) (r rolloutResult, ok bool) {
	scenario, attempt := rollout.Scenario, rollout.Attempt
	for try := 0; ; try++ {
		at := &position{seed: g.seed, group: scenario, attempt: attempt, try: try, rollout: rollout}
		t, err := g.try(ctx, at)
		if err == nil {
			return rolloutResult{trajectory: t}, true
		}
		if ctx.Err() != nil {
			return rolloutResult{}, false
		}
		if try == g.opts.Retries || permanent(err) {
			return failedRollout(scenario, attempt, try+1, err), true
		}
		select {
		case <-time.After(g.pause(at)):
		case <-ctx.Done():
			return rolloutResult{}, false
		}
	}
}

func (g *gathering) try(ctx context.Context, at *position) (*Trajectory, error) {
	timed, cancel := ctx, context.CancelFunc(func() {})
	if g.opts.Timeout > 0 {
		timed, cancel = context.WithTimeout(ctx, g.opts.Timeout)
	}
	defer cancel()
	timed, refused := withRefusal(context.WithValue(timed, positionKey{}, at))
	start := time.Now().UTC().Round(0)
	o := guard(timed, func() (*Trajectory, error) { return g.rollout(timed, at.group) })
	if o.late && ctx.Err() == nil {
		err := o.err // what the rollout returned, if it did
		switch {
		case err == nil:
			err = context.DeadlineExceeded
		case !errors.Is(err, context.DeadlineExceeded):
			err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
		}
		return nil, fmt.Errorf("rollout did not return within %v: %w", g.opts.Timeout, err)
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

func permanent(err error) bool {
	return slices.ContainsFunc([]error{ErrNotRegistered, ErrClosed, ErrFrozen, ErrUnsupported},
		func(target error) bool { return errors.Is(err, target) })
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

// failedRollout describes a rollout that failed after the given number of tries.
func failedRollout(scenario, attempt, tries int, err error) rolloutResult {
	f := &Failure{Scenario: scenario, Attempt: attempt, Tries: tries, Type: fmt.Sprintf("%T", err), Message: err.Error()}
	for inner := err; f.Type == "*fmt.wrapError"; f.Type = fmt.Sprintf("%T", inner) { // what fmt.Errorf wrapped
		if inner = errors.Unwrap(inner); inner == nil {
			break
		}
	}
	if p, ok := errors.AsType[*panicError](err); ok {
		f.Type, f.Stack = "panic", p.stack()
	}
	return rolloutResult{failure: f, err: err}
}

// allowedFailures returns how many of so many rollouts may fail.
func (o *GatherOptions) allowedFailures(rollouts int) int {
	// Without the small addition, 0.29 of 100 would be 28.
	fraction := math.Floor(o.MaxFailureFraction*float64(rollouts) + 1e-9)
	return max(o.MaxFailures, int(fraction))
}

// failures are the rollouts that failed, by reason.
type failures struct {
	n, afterHook int      // all of them, and those whose group After could not handle
	reasons      []reason // the first few that differ
}

type reason struct {
	err   error
	first string // rollout or scenario
	last  int    // scenario
	more  int    // that failed for this reason too: rollouts, or scenarios whose group After could not handle
}

// add counts a rollout, unless it did not fail.
func (f *failures) add(r rolloutResult) {
	const quoted = 3
	if r.failure == nil {
		return
	}
	f.n++
	first := fmt.Sprintf("scenario %d, attempt %d", r.failure.Scenario, r.failure.Attempt)
	if r.afterHook {
		f.afterHook++
		first = fmt.Sprintf("scenario %d", r.failure.Scenario)
	}
	for i := range f.reasons {
		known := &f.reasons[i]
		if known.err.Error() != r.err.Error() {
			continue
		}
		if !r.afterHook || known.last != r.failure.Scenario { // all trajectories of a group fail at once
			known.last, known.more = r.failure.Scenario, known.more+1
		}
		return
	}
	if len(f.reasons) < quoted {
		f.reasons = append(f.reasons, reason{err: r.err, first: first, last: r.failure.Scenario})
	}
}

// tooMany is the error of an op when there are more than allowed: it quotes each reason once and wraps their errors.
// count says how many there are, and options has the path of the field MaxFailures.
func (f *failures) tooMany(op, count, options string) error {
	e := &tooManyFailures{text: ErrTooManyFailures.Error(), errs: []error{ErrTooManyFailures}}
	hint := "fix the rollout, or allow failures with " + options + "MaxFailures"
	if f.afterHook == f.n {
		e.text = "too many groups could not be judged or filtered"
		hint = "fix what " + options + "After does, or the judge that it asks, or allow failures with " + options +
			"MaxFailures"
	}
	var text strings.Builder
	text.WriteString(e.text + ": " + count)
	for _, r := range f.reasons {
		text.WriteString("; " + r.first)
		if r.more > 0 {
			fmt.Fprintf(&text, " and %d more", r.more)
		}
		text.WriteString(": " + r.err.Error())
		e.errs = append(e.errs, r.err)
	}
	e.text = text.String()
	return &Error{op, e, hint}
}

// tooManyFailures is an [ErrTooManyFailures] that says itself what failed.
type tooManyFailures struct {
	text string
	errs []error
}

// Error returns the text.
func (e *tooManyFailures) Error() string { return e.text }

// Unwrap returns ErrTooManyFailures and the errors that are quoted.
func (e *tooManyFailures) Unwrap() []error { return e.errs }
