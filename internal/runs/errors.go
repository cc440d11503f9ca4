package runs

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/goart-dev/art"
)

// storage is an error of the file system; hint may be empty.
func storage(op string, err error, hint string) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		hint = join("the disk is full: free some space and try again", hint)
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EACCES):
		hint = join("the folder cannot be written to", hint)
	}
	return &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrStorage, err), Hint: hint}
}

// corrupt is an error of what is stored.
func corrupt(op string, err error, hint string) error {
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
