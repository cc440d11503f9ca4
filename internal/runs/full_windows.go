package runs

import (
	"errors"

	"golang.org/x/sys/windows"
)

// isDiskFull tells whether there is no space left, or none that the user may fill.
func isDiskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}

// isReadOnly tells whether nothing can be written to a disk.
func isReadOnly(err error) bool { return errors.Is(err, windows.ERROR_WRITE_PROTECT) }
