//go:build !windows

package stable

import (
	"errors"
	"os"
	"syscall"
)

// syncContent makes the content of a file durable.
func syncContent(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// syncNames makes the names in a folder durable.
func syncNames(dir string) error { return syncContent(dir) }

// rename moves a file or folder. A file replaces another one.
func rename(from, to string) error { return os.Rename(from, to) }

// IsFull reports whether no space is left on the disk or in the quota of the user.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// IsReadOnly reports whether the file system is read-only.
func IsReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }

// holderFile returns the file with the id of the process that holds a lock: the lock itself.
func holderFile(lock string) string { return lock }
