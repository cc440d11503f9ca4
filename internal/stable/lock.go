package stable

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// Lock is a lock that one process at a time holds. The kernel releases it when the process ends, for whatever reason;
// the file stays.
type Lock struct{ file *flock.Flock }

// HeldError says who holds a lock.
type HeldError struct{ Path, Holder string }

// Error implements error.
func (e *HeldError) Error() string { return e.Path + " is held by " + e.Holder }

// TakeLock takes the lock of a file, which it creates, and writes the id of this process into it. When another one
// holds it, the error is a [HeldError].
func TakeLock(path string) (*Lock, error) {
	l := &Lock{flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR))}
	locked, err := l.file.TryLock()
	if err != nil {
		return nil, err
	}
	if !locked {
		return nil, &HeldError{path, holder(path)}
	}
	// The id is only a hint for who comes second, so a failure to write it is not an error.
	_ = os.WriteFile(holderFile(path), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644)
	return l, nil
}

// holder describes the process that holds a lock.
func holder(path string) string {
	content, _ := os.ReadFile(holderFile(path))
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	switch {
	case err != nil:
		return "another process"
	case pid == os.Getpid():
		return "this process (" + strconv.Itoa(pid) + ")"
	}
	return "process " + strconv.Itoa(pid)
}

// Check returns an error unless the file at the path of the lock is the one that is held. The lock outlives the name of
// its file: after the folder was deleted, another process can create it again and lock another file.
func (l *Lock) Check() error {
	mine, err := l.file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(l.file.Path())
	if err != nil {
		return err
	}
	if !os.SameFile(mine, there) {
		return fmt.Errorf("%s is another file than the one that is locked", l.file.Path())
	}
	return nil
}

// Close releases the lock.
func (l *Lock) Close() error { return l.file.Close() }
