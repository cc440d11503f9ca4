package runs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
)

// Latest returns the newest step that has a checkpoint; ok is false when there is none.
func (r *Run) Latest() (step int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.steps) == 0 {
		return 0, false
	}
	return r.steps[len(r.steps)-1], true
}

// Steps returns the steps that have a checkpoint, in ascending order.
func (r *Run) Steps() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.steps)
}

// Checkpoint returns the folder of a step; ok is false when it has no checkpoint. What is in it must not be changed.
func (r *Run) Checkpoint(step int) (dir string, ok bool) {
	if !slices.Contains(r.Steps(), step) {
		return "", false
	}
	return r.checkpointDir(step), true
}

// CheckpointBytes is the size of the checkpoint of a step in the folder of a run, 0 of one that there is not.
func CheckpointBytes(run string, step int) int64 {
	return folderBytes(filepath.Join(run, "checkpoints", stepName(step)))
}

func (r *Run) checkpointDir(step int) string { return filepath.Join(r.checkpoints(), stepName(step)) }

// Next returns the step that Commit takes: 0 for a run without checkpoints, then one more than Latest.
func (r *Run) Next() int {
	if latest, ok := r.Latest(); ok {
		return latest + 1
	}
	return 0
}

// Commit stores the checkpoint of step, which must be [Run.Next], alone; [Run.CommitUpdate] is for a step that was
// trained. write puts files and folders into dir, an empty folder; it must not call methods that change the run. When
// Commit returns nil, the step is durable. After an error, which wraps [art.ErrStorage], and after a panic of
// write, which is returned as one, the run is at the previous step.
func (r *Run) Commit(step int, write func(dir string) error) error {
	const op = "commit checkpoint"
	return r.record(op, func() error {
		next := r.Next()
		if step != next {
			return invalid(op, fmt.Errorf("step %d: the next step of this run is %d", step, next))
		}
		if err := r.commit(step, write); err != nil {
			return storage(op, err, fmt.Sprintf("step %d of %s was not stored, the run is as it was before", step, r.dir))
		}
		r.committed(step)
		return nil
	})
}

// committed adds a step that is on disk.
func (r *Run) committed(step int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, step)
}

// commit writes, seals and renames a checkpoint. It removes everything when it fails.
func (r *Run) commit(step int, write func(dir string) error) error {
	final := r.checkpointDir(step)
	temp := r.temp(final)
	// Either may exist if an earlier commit failed, and its rollback too.
	if err := r.discard(final); err != nil {
		return err
	}
	if err := r.disk.RemoveAll(temp); err != nil {
		return err
	}
	if err := r.stage(temp, write); err != nil {
		return errors.Join(err, r.disk.RemoveAll(temp))
	}
	if err := r.disk.Rename(temp, final); err != nil {
		return errors.Join(err, r.disk.RemoveAll(temp))
	}
	if err := r.disk.SyncDir(r.checkpoints()); err != nil {
		return errors.Join(err, r.discard(final))
	}
	return nil
}

// stage fills dir and makes its content durable.
func (r *Run) stage(dir string, write func(dir string) error) error {
	if err := r.disk.Mkdir(dir); err != nil {
		return err
	}
	if err := guard(dir, write); err != nil {
		return err
	}
	if err := r.disk.Write(filepath.Join(dir, modelName), os.O_EXCL, r.model); err != nil {
		return err
	}
	return r.sealCheckpoint(dir)
}

// guard calls write and returns its panic as an error.
func guard(dir string, write func(dir string) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return write(dir)
}

// DeleteCheckpoints deletes the checkpoints of all steps but those to keep and the newest one, which is never deleted.
// History and trajectories stay. If one of those to keep is damaged, nothing is deleted, and the error wraps
// [art.ErrCorrupt].
func (r *Run) DeleteCheckpoints(keep []int) error {
	const op = "delete checkpoints"
	return r.change(op, func() error {
		var kept, others []int
		for _, step := range r.Steps() {
			if step == r.newest() || slices.Contains(keep, step) {
				kept = append(kept, step)
			} else {
				others = append(others, step)
			}
		}
		if len(others) == 0 {
			return nil
		}
		for _, step := range kept {
			if err := r.verifyOnce(step); err != nil {
				return corrupt(op, err, fmt.Sprintf("nothing was deleted: step %d is to be kept. Restore %s from a "+
					"backup, or move it away to keep another step", step, r.checkpointDir(step)))
			}
		}
		for _, step := range others {
			if err := r.delete(step); err != nil {
				return storage(op, err, fmt.Sprintf("step %d and later ones were not deleted", step))
			}
		}
		return nil
	})
}

// verifyOnce verifies a checkpoint, unless this process has done so: they do not change.
func (r *Run) verifyOnce(step int) error {
	if r.verified[step] {
		return nil
	}
	if err := verify(r.checkpointDir(step)); err != nil {
		return err
	}
	if r.verified == nil {
		r.verified = map[int]bool{}
	}
	r.verified[step] = true
	return nil
}

func (r *Run) delete(step int) error {
	if err := r.discard(r.checkpointDir(step)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = slices.DeleteFunc(r.steps, func(s int) bool { return s == step })
	return nil
}
