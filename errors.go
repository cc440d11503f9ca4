package art

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Errors of using a model.
var (
	ErrNotRegistered = errors.New("model is not registered")
	ErrFrozen        = errors.New("model is frozen")
	ErrUnsupported   = errors.New("not supported by this backend")
	ErrClosed        = errors.New("backend is closed")
	ErrBusy          = errors.New("too many requests are waiting")
	ErrDevice        = errors.New("device cannot be used")
	ErrCollapsed     = errors.New("rewards have collapsed")
)

// Errors of input.
var (
	ErrInvalid         = errors.New("invalid argument")
	ErrContextLength   = errors.New("context is too long")
	ErrNoGroups        = errors.New("no trajectory groups")
	ErrTooManyFailures = errors.New("too many rollouts failed")
	ErrNothingRecorded = errors.New("no completion was recorded")
	ErrRecordingEnded  = errors.New("the recording has ended")
)

// Errors of storage.
var (
	ErrBaseModel = errors.New("base model cannot be used")
	ErrCorrupt   = errors.New("stored data is damaged")
	ErrLocked    = errors.New("run is in use by another process")
	ErrStorage   = errors.New("storage failed")
)

// Error says what failed, why, and what to do about it. Err is, or wraps, one of the Err variables of this package.
type Error struct {
	Op   string // what was being done: "train", "register"
	Err  error
	Hint string // what the reader can do
}

// errorPrefix begins the text of every Error, once however many are wrapped in one another.
const errorPrefix = "art: "

// Error returns "art: op: err (hint)". An Error within err has no prefix of its own, and neither an op nor a hint that
// stands there already: "art: sft: jsonl: x.jsonl:3: invalid argument".
func (e *Error) Error() string {
	s := errorPrefix + e.Op + ": " + strings.TrimPrefix(fmt.Sprint(e.Err), e.Op+": ")
	for _, inner := range outermost(e.Err) {
		before, after, ok := strings.Cut(s, inner.Error())
		if !ok {
			continue // the text of err does not have it
		}
		text := strings.TrimPrefix(inner.Error(), errorPrefix)
		if own := inner.Op + ": "; strings.HasSuffix(before, own) {
			text = strings.TrimPrefix(text, own)
		}
		s = before + text + after
	}
	if hint := " (" + e.Hint + ")"; e.Hint != "" && !strings.HasSuffix(s, hint) {
		s += hint
	}
	return s
}

// outermost returns the Errors in the tree of err that are in no other Error of it.
func outermost(err error) []*Error {
	switch x := err.(type) { //nolint:errorlint // it walks the tree itself
	case *Error:
		return []*Error{x}
	case interface{ Unwrap() error }:
		return outermost(x.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*Error
		for _, inner := range x.Unwrap() {
			all = append(all, outermost(inner)...)
		}
		return all
	}
	return nil
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// problems collects everything that is wrong with an argument, so that one error lists it all.
type problems []string

func (p *problems) addf(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

func (p *problems) check(ok bool, format string, args ...any) {
	if !ok {
		p.addf(format, args...)
	}
}

// err returns the problems as one [ErrInvalid], or nil when there is none.
func (p problems) err(op, hint string) error {
	if len(p) == 0 {
		return nil
	}
	const maxListed = 20 // arguments may come from another process, and be long
	listed := strings.Join(p[:min(len(p), maxListed)], "; ")
	if more := len(p) - maxListed; more > 0 {
		listed += fmt.Sprintf("; and %d more", more)
	}
	return &Error{Op: op, Err: fmt.Errorf("%w: %s", ErrInvalid, listed), Hint: hint}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
