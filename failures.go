package art

import (
	"fmt"
	"math"
	"strings"
)

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
