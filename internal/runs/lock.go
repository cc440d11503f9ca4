package runs

import (
	"errors"
	"path/filepath"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/stable"
)

// acquire takes the lock of the run.
func (r *Run) acquire() (err error) {
	path := filepath.Join(r.dir, "lock")
	r.lock, err = stable.TakeLock(path)
	if held := (*stable.HeldError)(nil); errors.As(err, &held) {
		return &art.Error{Op: "open run", Err: art.ErrLocked, Hint: held.Error() + "; close that run first"}
	}
	if err != nil {
		return storage("open run", err, "check that "+path+" can be written to")
	}
	if err := r.held(); err != nil { // deleted after the folder was created and before the lock was taken
		return errors.Join(storage("open run", err, "open the run again"), r.lock.Close())
	}
	return nil
}

// errGone is the error of changing a run whose folder is no longer the one that was opened.
var errGone = errors.New("the run's folder was deleted, moved or replaced while the run was open")

// held returns [errGone] unless the lock file in the run's folder is the one that this process holds.
func (r *Run) held() error {
	if err := r.lock.Check(); err != nil {
		return errors.Join(errGone, err)
	}
	return nil
}
