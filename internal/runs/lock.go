package runs

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
	"github.com/gofrs/flock"
)

// acquire takes the lock of the run and writes this process into it. The kernel releases the lock when the process
// ends, however it ends; the file stays.
func (r *Run) acquire() error {
	path := filepath.Join(r.dir, "lock")
	r.lock = flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR))
	locked, err := r.lock.TryLock()
	if err != nil {
		return storage("open run", err, "check that "+path+" can be written to")
	}
	if !locked {
		return &art.Error{Op: "open run", Err: art.ErrLocked, Hint: path + " is held by " + holder(path) + "; close that run first"}
	}
	if err := r.held(); err != nil { // deleted between the making of the folder and the lock
		return errors.Join(storage("open run", err, "open the run again"), r.lock.Close())
	}
	// The id is a hint for the error above, so that it cannot be written is no reason to fail.
	if err := os.WriteFile(holderFile(path), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		r.log.Warn("cannot write the process id into the lock", "err", err)
	}
	return nil
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

// errGone is why a run whose folder is no longer the one that was opened cannot be changed.
var errGone = errors.New("the run's folder was deleted, moved or replaced while the run was open")

// held returns [errGone] unless the lock file in the run's folder is the one that this process holds. The lock outlives
// its name: after the folder was deleted, another process can make it again, lock another file, and write beside this
// one.
func (r *Run) held() error {
	mine, err := r.lock.Stat()
	if err != nil {
		return errors.Join(errGone, err)
	}
	there, err := os.Stat(r.lock.Path())
	if err != nil {
		return errors.Join(errGone, err)
	}
	if !os.SameFile(mine, there) {
		return errGone
	}
	return nil
}
