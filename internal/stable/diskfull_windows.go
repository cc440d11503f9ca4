package stable

import (
	"errors"

	"golang.org/x/sys/windows"
)

// IsFull reports whether no space is left on the disk or in the quota of the user.
func IsFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}

// IsReadOnly reports whether the disk is write-protected.
func IsReadOnly(err error) bool { return errors.Is(err, windows.ERROR_WRITE_PROTECT) }
