package runs

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/stable"
)

// storage is an error of the file system; hint may be empty.
func storage(op string, err error, hint string) error {
	switch {
	case stable.IsFull(err):
		hint = join("the disk is full: free some space and try again", hint)
	case stable.IsReadOnly(err), errors.Is(err, fs.ErrPermission):
		hint = join("the folder cannot be written to", hint)
	}
	return &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrStorage, err), Hint: hint}
}

// corrupt is an error of what is stored. What a newer version wrote is not damaged: the hint is another one then.
func corrupt(op string, err error, hint string) error {
	if isNewer(err) {
		return unsupported(op, err, upgrade)
	}
	return &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrCorrupt, err), Hint: hint}
}

// invalid is an error of the caller.
func invalid(op string, err error) error {
	return &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrInvalid, err)}
}

func join(a, b string) string {
	if b == "" {
		return a
	}
	return a + "; " + b
}
