package tenancy

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// MaxAttempts is how often an operation is begun that has never ended: it may be what ends the process.
const MaxAttempts = 3

// errInternal is what a tenant reads of a panic.
var errInternal = errors.New("the server failed in this operation, by a fault of its own; its log has the details")

// ErrAttempts is the error of an operation that was begun [MaxAttempts] times.
var ErrAttempts = fmt.Errorf("the server has stopped %d times while it executed this, so that it is not begun again",
	MaxAttempts)

// Recovered calls f, and makes an error of a panic. The log has the panic with its stack; the error has neither, since
// tenants read it.
func Recovered(log *slog.Logger, what string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("panic", "in", what, "panic", v, "stack", string(debug.Stack()))
			err = errInternal
		}
	}()
	return f()
}

// IsPanic reports whether an error is that of a panic.
func IsPanic(err error) bool { return errors.Is(err, errInternal) }
