package art

import (
	"fmt"
	"strings"
)

// failures are the rollouts that failed, by reason.
type failures struct {
	n, afterHook int      // all of them, and those whose group After could not handle
	reasons      []reason // the first few that differ
}

// reason is why rollouts failed.
type reason struct {
	err   error
	first string // rollout or scenario
	last  int    // scenario
	more  int    // that failed for this reason too: rollouts, or scenarios whose group After could not handle
}

// add counts a rollout, unless it did not fail.
func (f *failures) add(c cell) {
	const quoted = 3
	if c.failure == nil {
		return
	}
	f.n++
	first := fmt.Sprintf("scenario %d, attempt %d", c.failure.Scenario, c.failure.Attempt)
	if c.afterHook {
		f.afterHook++
		first = fmt.Sprintf("scenario %d", c.failure.Scenario)
	}
	for i := range f.reasons {
		r := &f.reasons[i]
		if r.err.Error() != c.err.Error() {
			continue
		}
		if !c.afterHook || r.last != c.failure.Scenario { // all trajectories of a group fail at once
			r.last, r.more = c.failure.Scenario, r.more+1
		}
		return
	}
	if len(f.reasons) < quoted {
		f.reasons = append(f.reasons, reason{err: c.err, first: first, last: c.failure.Scenario})
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
