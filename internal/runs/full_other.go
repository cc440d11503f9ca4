//go:build !windows

package runs

import (
	"errors"
	"syscall"
)

// isDiskFull tells whether there is no space left, or none that the user may fill.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// isReadOnly tells whether nothing can be written to a file system.
func isReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
