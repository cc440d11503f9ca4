package tenancy

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"runtime/debug"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/stable"
)

// Public is the text of an error for tenants: without paths of the server, and of errors of its files without more than
// what kind they are.
func Public(err error) string {
	var path *fs.PathError
	var link *os.LinkError
	var damage *DamageError
	switch {
	case errors.As(err, &damage):
		return damage.Error()
	case stable.IsFull(err):
		return "the server's disk is full; try again when its operator has freed some space"
	case errors.As(err, &path), errors.As(err, &link), errors.Is(err, art.ErrStorage), errors.Is(err, art.ErrCorrupt):
		return "the server could not read or write its files; its log has the details"
	}
	return absolutePath.ReplaceAllString(err.Error(), "${1}a file of the server")
}

// absolutePath is a path from the root, or from a drive, of at least two names. What follows a colon or a slash is part
// of an address.
var absolutePath = regexp.MustCompile(`(^|[\s"'(=,\[])` +
	`(?:(?:[A-Za-z]:)?[\\/]+[^\\/\s"'(),:;]+(?:[\\/]+[^\\/\s"'(),:;]*)+|[A-Za-z]:\\[^\s"'(),:;]*)`)

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
