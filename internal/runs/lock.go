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
// ends, for whatever reason; the file stays.
func (r *Run) acquire() error {
	path := filepath.Join(r.dir, "lock")
	r.lock = flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR))
	locked, err := r.lock.TryLock()
	if err != nil {
		return storage("open run", err, "check that "+path+" can be written to")
	}
	if !locked {
		return &art.Error{Op: "open run", Err: art.ErrLocked,
			Hint: path + " is held by " + holder(path) + "; close that run first"}
	}
	if err := r.held(); err != nil { // deleted after the folder was created and before the lock was taken
		return errors.Join(storage("open run", err, "open the run again"), r.lock.Close())
	}
	// The id is only a hint for the error above, so a failure to write it is not an error.
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

// errGone is the error of changing a run whose folder is no longer the one that was opened.
var errGone = errors.New("the run's folder was deleted, moved or replaced while the run was open")

// held returns [errGone] unless the lock file in the run's folder is the one that this process holds. The lock outlives
// the name of its file: after the folder was deleted, another process can create it again, lock another file, and write
// to it as well.
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
