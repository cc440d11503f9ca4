//go:build !windows

package runs

import (
	"errors"
	"syscall"
)

// isDiskFull reports whether no space is left on the disk or in the quota of the user.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// isReadOnly reports whether the file system is read-only.
func isReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
