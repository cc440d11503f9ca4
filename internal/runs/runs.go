// Package runs stores training runs, such that a kill, a full disk or a second process never costs more than the step
// in progress.
//
// # Layout
//
//	{root}/{project}/models/{name}/
//	    lock                              held (flock) while the run is open; holds the id of the process
//	    model.json                        what the model is, written by the backend, and the version of this layout
//	    state.json                        the user's own state
//	    history.jsonl                     one row of metrics per (split, step)
//	    history.checksum.json             checksums of history.jsonl before and after its last change
//	    history.jsonl.damaged             rows that were removed from history.jsonl as damaged
//	    checkpoints/0001/                 the files of a step, checksums.json, and a copy of model.json
//	    trajectories/{split}/0001.parquet every trajectory of a (split, step), without loss
//
// # Commit
//
// A file or folder is written under a name that starts with ".tmp-", fsynced, renamed into place, and the folder above
// is fsynced. The update from step k to k+1 writes its trajectories and its row of history, both of split "train" and
// step k, and then renames checkpoint k+1 into place: that rename is the commit ([Run.CommitUpdate]). [Open] drops what
// an interrupted update left: temporary files, a torn last row, and rows and trajectories of split "train" at the
// newest checkpoint.
//
// # Steps
//
// The first checkpoint is step 0 and each further one is the next number. Row k of split "train" holds what policy k
// earned and the update from k to k+1; row k of any other split is a measurement of policy k. Nothing can be stored for
// a step that has no checkpoint yet. A run without checkpoints is a model that is not trained: its only step is 0, and
// what is logged for it stays.
//
// # Damage
//
// [Open] returns an error that wraps [art.ErrCorrupt], and changes nothing, where going on would lose or mix something:
// the newest checkpoint is damaged, or model.json is missing from a run that has been used. What is already lost
// is logged as a warning, and returned by [Run.Damage]: damaged older checkpoints, a history that differs from what was
// written, updates without their row or trajectories.
package runs

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/stable"
)

// Options of [Open]. Zero values are the defaults.
type Options struct {
	// Logger receives what recovery dropped, and damage. nil discards.
	Logger *slog.Logger
	// Now is the clock of the history. Default [time.Now].
	Now func() time.Time
}

// Run is an open run directory. It is safe for concurrent use.
type Run struct {
	dir  string
	log  *slog.Logger
	now  func() time.Time
	lock *stable.Lock
	disk disk

	writing   sync.Mutex // one change of the directory at a time; taken before mu; guards the next fields
	closed    bool
	model     []byte       // content of model.json, nil before it is written
	layout    int          // of the directory
	announced historySum   // of the history
	verified  map[int]bool // steps whose files were verified, by DeleteCheckpoints
	pending   *updateState // the state before a failed update that could not be rolled back, nil for none

	mu        sync.Mutex // guards the fields below, and is never held during input or output
	steps     []int      // with a checkpoint, ascending
	history   history
	recovered Recovery
	damage    Damage
}

// Recovery counts what [Open] found from an interrupted process.
type Recovery struct {
	Temporary int // files and folders that had not been renamed into place
	Rows      int // history rows that were torn, or of a step that was not committed: dropped
	Files     int // trajectory files of a step that was not committed: dropped
	Aside     int // rows and files that could not be kept and that no interruption explains: moved aside
}

// Open opens a run directory, which it creates if there is none, and locks it: a second Open, of this or another
// process, is an error that wraps [art.ErrLocked] until Close. A damaged newest checkpoint is an error that wraps
// [art.ErrCorrupt]; nothing is deleted then. opts may be nil.
func Open(root, project, name string, opts *Options) (*Run, error) {
	return open(root, project, name, opts, disk{})
}

func open(root, project, name string, opts *Options, d disk) (*Run, error) {
	if err := errors.Join(checkName("project", project), checkName("model", name)); err != nil {
		return nil, invalid("open run", err)
	}
	r := newRun(filepath.Join(root, project, "models", name), opts, d)
	for _, dir := range []string{r.dir, r.checkpoints(), r.trajectories()} {
		if err := r.disk.MkdirAll(dir); err != nil {
			return nil, storage("open run", err, "check that the folder "+root+" can be written to")
		}
	}
	if err := r.acquire(); err != nil {
		return nil, err
	}
	r.disk.Guard = r.held
	for _, prepare := range []func() error{r.readLayout, r.recover} {
		if err := prepare(); err != nil {
			return nil, errors.Join(err, r.lock.Close())
		}
	}
	return r, nil
}

// disk makes every change of the run directory; tests inject faults with its Hook.
type disk = stable.Disk

// tempPrefix marks files that are not yet, or no longer, part of the run. Open removes them.
const tempPrefix = stable.TempPrefix

func newRun(dir string, opts *Options, d disk) *Run {
	if opts == nil {
		opts = &Options{}
	}
	r := &Run{dir: dir, log: opts.Logger, now: opts.Now, disk: d, verified: map[int]bool{}}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.now == nil {
		r.now = time.Now
	}
	r.log = r.log.With("run", dir)
	return r
}

// Dir returns the folder of the run.
func (r *Run) Dir() string { return r.dir }

// Recovered returns what Open cleaned up.
func (r *Run) Recovered() Recovery { return r.recovered }

// Close waits for the change in progress and releases the lock. Changes after Close are errors that wrap
// [art.ErrClosed].
func (r *Run) Close() error {
	r.writing.Lock()
	defer r.writing.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	r.confirmHistory()
	return storage("close run", r.lock.Close(), "")
}

// change runs do as the only change of the directory.
func (r *Run) change(op string, do func() error) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	if r.closed {
		return &art.Error{Op: op, Err: art.ErrClosed, Hint: "the run was closed; open it again"}
	}
	if err := r.held(); err != nil {
		return storage(op, err, "nothing was written to "+r.dir+
			"; put the folder back, or close the run and open it again to begin a new one")
	}
	return do()
}

// record is change for what belongs to a model: it requires model.json, and first completes a failed rollback.
func (r *Run) record(op string, do func() error) error {
	return r.change(op, func() error {
		if r.model == nil {
			return invalid(op, errors.New("write model.json first: without it the run could not be opened again"))
		}
		if err := r.settle(); err != nil {
			return storage(op, err, "an earlier update that failed is not rolled back yet, and nothing is stored until it is")
		}
		return do()
	})
}

func (r *Run) checkpoints() string  { return filepath.Join(r.dir, "checkpoints") }
func (r *Run) trajectories() string { return filepath.Join(r.dir, "trajectories") }

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
