package runs

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/goart-dev/art"
)

// Update describes the update from one step to the next.
type Update struct {
	// Groups were trained on. Without any, the update has no file of trajectories.
	Groups []*art.TrajectoryGroup
	// Metrics of the update, and of the groups. Keys without a slash get "train" as prefix.
	Metrics map[string]float64
}

// CommitUpdate stores the checkpoint of step, as [Run.Commit] does, and with it the row and the trajectories of split
// "train" of the previous step, from which the update came. What was logged there before stays: metrics are merged, and
// groups that are not in the update come after its own.
//
// The order is trajectories, row, checkpoint. If the process is killed in between, the run is at the previous step, and
// [Open] drops the others. After an error the run is at the previous step too, and they are rolled back.
func (r *Run) CommitUpdate(step int, update Update, write func(dir string) error) error {
	const op = "commit update"
	return r.record(op, func() error {
		if next := r.Next(); step != next || step == 0 {
			err := fmt.Errorf("step %d: the next step of this run is %d, and step 0 is no update", step, next)
			return invalid(op, err)
		}
		metrics, err := rowMetrics(trainSplit, update.Metrics)
		if err != nil {
			return invalid(op, err)
		}
		path := r.trajectoryPath(trainSplit, step-1)
		stored, err := readIfThere(path)
		if err != nil {
			return storage(op, err, "")
		}
		content := stored
		if len(update.Groups) > 0 {
			if content, err = merge(op, path, update.Groups, stored, false); err != nil {
				return err
			}
		}
		r.pending = &updateState{step - 1, stored, slices.Clone(r.history.rows)}
		if content != nil {
			err = r.writeTrajectories(trainSplit, step-1, content)
		}
		if err == nil {
			err = r.mergeRow(trainSplit, step-1, metrics, len(update.Groups))
		}
		if err == nil {
			err = r.commit(step, write)
		}
		if err != nil {
			hint := fmt.Sprintf("step %d of %s was not stored, the run is as it was before", step, r.dir)
			return storage(op, errors.Join(err, r.settle()), hint)
		}
		r.pending = nil
		r.committed(step)
		return nil
	})
}

// updateState is the state to which a failed update is rolled back.
type updateState struct {
	step         int
	trajectories []byte // nil when there is no file
	rows         []historyRow
}

// settle rolls back an update that could not be committed. Until it succeeds, the run stores nothing else.
func (r *Run) settle() error {
	s := r.pending
	if s == nil {
		return nil
	}
	if err := r.restoreTrajectories(s); err != nil {
		return err
	}
	if r.history.torn || !bytes.Equal(joinRows(s.rows), joinRows(r.history.rows)) {
		if err := r.rewriteHistory(s.rows); err != nil {
			return err
		}
	}
	r.pending = nil
	return nil
}

func (r *Run) restoreTrajectories(s *updateState) error {
	path := r.trajectoryPath(trainSplit, s.step)
	if s.trajectories == nil {
		return r.discard(path)
	}
	if now, err := readIfThere(path); err != nil || bytes.Equal(now, s.trajectories) {
		return err
	}
	return r.disk.Replace(path, s.trajectories)
}

// trajectoryPath is the file of (split, step).
func (r *Run) trajectoryPath(split string, step int) string {
	return filepath.Join(r.splitDir(split), stepName(step)+parquetSuffix)
}
