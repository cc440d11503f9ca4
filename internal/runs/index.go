package runs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/goart-dev/art"
	"github.com/parquet-go/parquet-go"
)

// Entry is what the index of a trajectory file says of one trajectory: everything but what was said.
type Entry struct {
	// Group is the index of the group, and Trajectory that within the group; -1 is a group without trajectories.
	Group, Trajectory int
	Reward            float64
	Start             time.Time // zero: unknown
	Duration          time.Duration
	// FirstStep and LastStep are the policy steps of the samples, -1 without any.
	FirstStep, LastStep int
	// Failures of the group. Its first entry has them.
	Failures []art.Failure
}

// Index returns an entry for each trajectory of (split, step), in order. It reads the columns of an [Entry] only, so
// that a file of 100,000 trajectories takes a fraction of a second; the checksum of the file is therefore not verified.
// None stored is an error that wraps [fs.ErrNotExist].
func (r *Reader) Index(split string, step int) ([]Entry, error) {
	var entries []Entry
	err := r.scan("index trajectories", split, step, func(file *parquet.File) error {
		var c entryColumns
		return scanColumns(file, &c, func() (bool, error) {
			e, err := c.entry()
			entries = append(entries, e)
			return true, err
		})
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// Texts calls yield with what was said in each trajectory of (split, step), in order, until it returns false: the
// messages of the first history, without samples and unknown fields. As [Reader.Index] it does not verify the file.
func (r *Reader) Texts(split string, step int, yield func(group, trajectory int, messages []art.Message) bool) error {
	return r.scan("read texts", split, step, func(file *parquet.File) error {
		var c textColumns
		return scanColumns(file, &c, func() (bool, error) {
			t, err := c.row()
			if err != nil || t.trajectory < 0 {
				return true, err
			}
			return yield(t.group, t.trajectory, t.messages), nil
		})
	})
}

// ReadGroup returns one group of (split, step), by its index, with all that is stored of it. It reads the pages that
// hold the group only, so the checksum of the file is not verified. A group that there is not is an error that wraps
// [art.ErrInvalid].
func (r *Reader) ReadGroup(split string, step, group int) (*art.TrajectoryGroup, error) {
	const op = "read group"
	first, n, err := r.locate(op, split, step, group)
	if err != nil {
		return nil, err
	}
	if first < 0 {
		return nil, invalid(op, fmt.Errorf("split %s of step %d has no group %d", split, step, group))
	}
	var groups []*art.TrajectoryGroup
	err = r.scan(op, split, step, func(file *parquet.File) error {
		return scanRows(file, int64(first), func(row *trajectoryRow) (bool, error) {
			row.GroupIndex = 0
			var err error
			groups, err = addRow(groups, row)
			n--
			return n > 0, err
		})
	})
	if err != nil {
		return nil, err
	}
	return groups[0], nil
}

// groupColumns reads which group a row is of.
type groupColumns struct{ group column }

func (c *groupColumns) all() map[string]*column { return map[string]*column{"group_index": &c.group} }

// locate returns the first row of a group, -1 for none, and the number of its rows.
func (r *Reader) locate(op, split string, step, group int) (first, n int, err error) {
	first = -1
	err = r.scan(op, split, step, func(file *parquet.File) error {
		var c groupColumns
		at := 0
		return scanColumns(file, &c, func() (bool, error) {
			index, err := c.group.number(0)
			if index == group && first < 0 {
				first = at
			}
			if index == group {
				n++
			}
			at++
			return index <= group, err
		})
	})
	return first, n, err
}

// scan calls read with the file of (split, step).
func (r *Reader) scan(op, split string, step int, read func(*parquet.File) error) error {
	if err := checkName("split", split); err != nil {
		return invalid(op, err)
	}
	path := r.run.trajectoryPath(split, step)
	f, err := os.Open(path)
	if err != nil {
		return storage(op, err, "")
	}
	defer f.Close()
	if err := scanFile(f, read); err != nil {
		return damagedFile(op, path, err)
	}
	return nil
}

// scanFile calls read with a file of trajectories.
func scanFile(f *os.File, read func(*parquet.File) error) (err error) {
	defer catch(&err)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipBloomFilters(true))
	if err != nil {
		return err
	}
	if err := checkColumns(file); err != nil {
		return err
	}
	return read(file)
}

// scanRows calls yield with the rows of a file from row first on, until it returns false. What is yielded is valid
// during the call only.
func scanRows(file *parquet.File, first int64, yield func(*trajectoryRow) (bool, error)) error {
	rows := parquet.NewGenericReader[trajectoryRow](file)
	defer rows.Close()
	if first > 0 {
		if err := rows.SeekToRow(first); err != nil {
			return err
		}
	}
	for batch := make([]trajectoryRow, readRowsBatch); ; clear(batch) {
		n, err := rows.Read(batch)
		for i := range n {
			if more, err := yield(&batch[i]); err != nil || !more {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || n == 0 {
			return fmt.Errorf("it ends early: %w", err)
		}
	}
}
