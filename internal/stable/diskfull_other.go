//go:build !windows

package stable

import (
	"errors"
	"syscall"
)

// IsFull reports whether no space is left on the disk or in the quota of the user.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// IsReadOnly reports whether the file system is read-only.
func IsReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
