package art

import (
	"errors"
	"fmt"
)

// Errors of using a model.
var (
	ErrNotRegistered = errors.New("model is not registered")
	ErrFrozen        = errors.New("model is frozen")
	ErrUnsupported   = errors.New("not supported by this backend")
	ErrClosed        = errors.New("backend is closed")
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

// Error returns "art: op: err (hint)".
func (e *Error) Error() string {
	s := fmt.Sprintf("art: %s: %v", e.Op, e.Err)
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
