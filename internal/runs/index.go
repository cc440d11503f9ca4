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

// entryRow are the columns of an [Entry].
type entryRow struct {
	GroupIndex      int64       `parquet:"group_index"`
	TrajectoryIndex *int64      `parquet:"trajectory_index,optional"`
	Reward          *float64    `parquet:"reward,optional"`
	Start           int64       `parquet:"start,timestamp(microsecond),optional"`
	Duration        int64       `parquet:"duration_ns"`
	FirstPolicyStep *int64      `parquet:"first_policy_step,optional"`
	LastPolicyStep  *int64      `parquet:"last_policy_step,optional"`
	Group           *entryGroup `parquet:"group,optional"`
}

type entryGroup struct {
	Failures []failureRow `parquet:"failures,list"`
}

// textRow are the columns of what was said, without tokens.
type textRow struct {
	GroupIndex      int64     `parquet:"group_index"`
	TrajectoryIndex *int64    `parquet:"trajectory_index,optional"`
	Messages        []textCol `parquet:"messages,list"`
}

type textCol struct {
	Role      string        `parquet:"role"`
	Content   string        `parquet:"content"`
	Reasoning string        `parquet:"reasoning"`
	ToolCalls []toolCallRow `parquet:"tool_calls,list"`
	Name      string        `parquet:"name"`
}

// Index returns an entry for each trajectory of (split, step), in order. It reads the columns of an [Entry] only, so
// that a file of 100,000 trajectories takes a fraction of a second; the checksum of the file is therefore not verified.
// None stored is an error that wraps [fs.ErrNotExist].
func (r *Reader) Index(split string, step int) ([]Entry, error) {
	var entries []Entry
	err := readColumns(r, "index trajectories", split, step, 0, func(row *entryRow) (bool, error) {
		entries = append(entries, row.entry())
		return true, nil
	})
	return entries, err
}

// entry is the row as an [Entry].
func (row *entryRow) entry() Entry {
	e := Entry{Group: int(row.GroupIndex), Trajectory: -1, Duration: time.Duration(row.Duration), FirstStep: -1,
		LastStep: -1}
	if row.TrajectoryIndex != nil {
		e.Trajectory = int(*row.TrajectoryIndex)
	}
	if row.Reward != nil {
		e.Reward = *row.Reward
	}
	if row.Start != 0 {
		e.Start = time.UnixMicro(row.Start).UTC()
	}
	if row.FirstPolicyStep != nil && row.LastPolicyStep != nil {
		e.FirstStep, e.LastStep = int(*row.FirstPolicyStep), int(*row.LastPolicyStep)
	}
	if row.Group != nil {
		for _, f := range row.Group.Failures {
			e.Failures = append(e.Failures, art.Failure{Scenario: int(f.Scenario), Attempt: int(f.Attempt),
				Tries: int(f.Tries), Type: f.Type, Message: f.Message, Stack: f.Stack})
		}
	}
	return e
}

// Texts calls yield with what was said in each trajectory of (split, step), in order, until it returns false: the
// messages of the first history, without samples and unknown fields. As [Reader.Index] it does not verify the file.
func (r *Reader) Texts(split string, step int, yield func(group, trajectory int, messages []art.Message) bool) error {
	return readColumns(r, "read texts", split, step, 0, func(row *textRow) (bool, error) {
		if row.TrajectoryIndex == nil {
			return true, nil
		}
		messages := make([]art.Message, len(row.Messages))
		for i, m := range row.Messages {
			messages[i] = art.Message{Role: art.Role(m.Role), Content: m.Content, Reasoning: m.Reasoning, Name: m.Name}
			for _, c := range m.ToolCalls {
				messages[i].ToolCalls = append(messages[i].ToolCalls,
					art.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
			}
		}
		return yield(int(row.GroupIndex), int(*row.TrajectoryIndex), messages), nil
	})
}

// ReadGroup returns one group of (split, step), by its index, with all that is stored of it. It reads the pages that
// hold the group only, so the checksum of the file is not verified. A group that there is not is an error that wraps
// [art.ErrInvalid].
func (r *Reader) ReadGroup(split string, step, group int) (*art.TrajectoryGroup, error) {
	const op = "read group"
	first, n, at := -1, 0, 0
	err := readColumns(r, op, split, step, 0, func(row *groupIndexRow) (bool, error) {
		if row.GroupIndex == int64(group) {
			if first < 0 {
				first = at
			}
			n++
		}
		at++
		return row.GroupIndex <= int64(group), nil
	})
	if err != nil {
		return nil, err
	}
	if first < 0 {
		return nil, invalid(op, fmt.Errorf("split %s of step %d has no group %d", split, step, group))
	}
	var groups []*art.TrajectoryGroup
	err = readColumns(r, op, split, step, int64(first), func(row *trajectoryRow) (bool, error) {
		row.GroupIndex = 0
		var err error
		groups, err = addRow(groups, row)
		n--
		return n > 0, err
	})
	if err != nil {
		return nil, err
	}
	return groups[0], nil
}

// groupIndexRow is the column that tells where a group is.
type groupIndexRow struct {
	GroupIndex int64 `parquet:"group_index"`
}

// readColumns calls yield with the rows of (split, step) from row first on, in the columns of T, until it returns
// false. What is yielded is valid during the call only.
func readColumns[T any](
	r *Reader, op, split string, step int, first int64, yield func(*T) (bool, error),
) (err error) {
	if err := checkName("split", split); err != nil {
		return invalid(op, err)
	}
	path := r.run.trajectoryPath(split, step)
	f, err := os.Open(path)
	if err != nil {
		return storage(op, err, "")
	}
	defer f.Close()
	if err := scanColumns(f, first, yield); err != nil {
		return damagedFile(op, path, err)
	}
	return nil
}

// scanColumns is readColumns of a file.
func scanColumns[T any](f *os.File, first int64, yield func(*T) (bool, error)) (err error) {
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
	rows := parquet.NewGenericReader[T](file)
	defer rows.Close()
	if first > 0 {
		if err := rows.SeekToRow(first); err != nil {
			return err
		}
	}
	for batch := make([]T, readRowsBatch); ; clear(batch) {
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
