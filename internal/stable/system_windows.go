package stable

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// syncContent makes the content of a file durable: FlushFileBuffers requires a file opened for writing.
func syncContent(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncNames does nothing. Windows refuses to flush a folder. NTFS keeps the order of its changes in a journal, and
// rename waits until that of the name is on disk.
func syncNames(string) error { return nil }

// rename moves a file or folder, durably. A file replaces another one. It fails while another process has the file, or
// one in the folder, open, as virus scanners do for a moment.
func rename(from, to string) error {
	err := move(from, to)
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

func move(from, to string) error {
	source, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	target, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	return windows.MoveFileEx(source, target, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH)
}

// IsFull reports whether no space is left on the disk or in the quota of the user.
func IsFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}

// IsReadOnly reports whether the disk is write-protected.
func IsReadOnly(err error) bool { return errors.Is(err, windows.ERROR_WRITE_PROTECT) }

// holderFile returns the file with the id of the process that holds a lock. On Windows a locked file cannot be read, so
// it is a separate one.
func holderFile(lock string) string { return lock + ".pid" }
