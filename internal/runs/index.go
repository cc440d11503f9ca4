package runs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/goart-dev/art"
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
		return scanColumns(file, c.all(), func() (bool, error) {
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
		return scanColumns(file, c.all(), func() (bool, error) {
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

// locate returns the first row of a group, -1 for none, and the number of its rows.
func (r *Reader) locate(op, split string, step, group int) (first, n int, err error) {
	first = -1
	err = r.scan(op, split, step, func(file *parquet.File) error {
		var c column
		at := 0
		return scanColumns(file, map[string]*column{"group_index": &c}, func() (bool, error) {
			index, err := c.number(0)
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
	info, err := f.Stat()
	if err == nil {
		err = scanFile(f, info.Size(), read)
	}
	if err != nil {
		return damagedFile(op, path, err)
	}
	return nil
}

// scanFile calls read with a file of trajectories.
func scanFile(f io.ReaderAt, size int64, read func(*parquet.File) error) (err error) {
	defer catch(&err)
	file, err := parquet.OpenFile(f, size, parquet.SkipBloomFilters(true))
	if err != nil {
		return err
	}
	text, _ := file.Lookup(formatKey)
	have, err := strconv.Atoi(text)
	if err != nil || have < 1 {
		return fmt.Errorf("it has columns of format %q, which no version of art wrote", text)
	}
	if have > trajectoryFormat {
		return &newerFormat{"the file", have, trajectoryFormat}
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
	// No memory is allocated for the number of rows that a file claims.
	for batch := make([]trajectoryRow, 64); ; clear(batch) {
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

// scanColumns calls yield at each row of a file, which has to take the values of the row from all columns, by their
// paths, until it returns false. A generic reader of rows takes several times as long, and the page of runs looks
// through 100,000 trajectories while somebody waits.
func scanColumns(file *parquet.File, all map[string]*column, yield func() (bool, error)) error {
	for _, rows := range file.RowGroups() {
		more, err := scanRowGroup(file.Schema(), rows, all, yield)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// scanRowGroup is scanColumns of a row group.
func scanRowGroup(
	schema *parquet.Schema, rows parquet.RowGroup, all map[string]*column, yield func() (bool, error),
) (more bool, err error) {
	defer func() {
		for _, c := range all {
			if c.reader != nil {
				_ = c.reader.Close() // nothing is written
				c.reader = nil
			}
		}
	}()
	for path, c := range all {
		found, ok := schema.Lookup(strings.Split(path, ".")...)
		if !ok {
			return false, fmt.Errorf("it has no column %s", path)
		}
		c.reader = parquet.NewColumnChunkValueReader(rows.ColumnChunks()[found.ColumnIndex])
		c.full, c.next = found.MaxDefinitionLevel, nil
		if c.buffer == nil {
			c.buffer = make([]parquet.Value, 256)
		}
	}
	for range rows.NumRows() {
		if more, err := yield(); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// column reads the values of one column in order.
//
// The levels of Parquet say where a value belongs: repetition level 0 begins a row, 1 an element of its list, 2 an
// element of a list in that; a value that is not there, as of an empty list, has less than the full definition level.
type column struct {
	reader parquet.ColumnChunkValueReader
	full   int             // definition level of a value that is there
	buffer []parquet.Value // what was read of a page
	next   []parquet.Value // of it: what was not taken
}

// peek returns the next value, nil at the end. It is valid until the next peek after it was taken.
func (c *column) peek() (*parquet.Value, error) {
	for len(c.next) == 0 {
		n, err := c.reader.ReadValues(c.buffer)
		c.next = c.buffer[:n]
		if n == 0 && errors.Is(err, io.EOF) {
			return nil, nil //nolint:nilnil // the end is no error here
		}
		if n == 0 && err != nil {
			return nil, err
		}
	}
	return &c.next[0], nil
}

// value takes the value of a row, false for none.
func (c *column) value() (v parquet.Value, ok bool, err error) {
	next, err := c.peek()
	if err != nil {
		return v, false, err
	}
	if next == nil {
		return v, false, io.ErrUnexpectedEOF
	}
	c.next = c.next[1:]
	return *next, next.DefinitionLevel() == c.full, nil
}

// number takes the integer of a row, or returns none.
func (c *column) number(none int) (int, error) {
	v, ok, err := c.value()
	if err != nil || !ok {
		return none, err
	}
	return int(v.Int64()), nil
}

// elements takes the values of a row, with the index of the element of each.
func (c *column) elements(yield func(element int, v *parquet.Value)) error {
	element := -1
	for {
		v, err := c.peek()
		switch {
		case err != nil:
			return err
		case element < 0 && (v == nil || v.RepetitionLevel() != 0):
			return io.ErrUnexpectedEOF
		case element >= 0 && (v == nil || v.RepetitionLevel() == 0):
			return nil
		}
		if v.RepetitionLevel() <= 1 {
			element++
		}
		if v.DefinitionLevel() == c.full {
			yield(element, v)
		}
		c.next = c.next[1:]
	}
}

// fill calls set with the values of a row, of which there have to be n, as many as what.
func (c *column) fill(n int, what string, set func(i int, v *parquet.Value)) error {
	count := 0
	err := c.elements(func(_ int, v *parquet.Value) {
		if count < n {
			set(count, v)
		}
		count++
	})
	if err == nil && count != n {
		return fmt.Errorf("a row has %d %s and %d other values", n, what, count)
	}
	return err
}

// entryColumns reads entries.
type entryColumns struct {
	group, trajectory, reward, start, duration, first, last column

	scenario, attempt, tries, kind, message, stack column // one value per failure of a group
}

func (c *entryColumns) all() map[string]*column {
	const failure = "group.failures.list.element."
	return map[string]*column{
		"group_index": &c.group, "trajectory_index": &c.trajectory, "reward": &c.reward, "start": &c.start,
		"duration_ns": &c.duration, "first_policy_step": &c.first, "last_policy_step": &c.last,
		failure + "scenario": &c.scenario, failure + "attempt": &c.attempt, failure + "tries": &c.tries,
		failure + "type": &c.kind, failure + "message": &c.message, failure + "stack": &c.stack,
	}
}

// entry reads the next row.
func (c *entryColumns) entry() (e Entry, err error) {
	var start, duration int
	for _, f := range [...]struct {
		column *column
		to     *int
		none   int
	}{
		{&c.group, &e.Group, 0}, {&c.trajectory, &e.Trajectory, -1}, {&c.start, &start, 0}, {&c.duration, &duration, 0},
		{&c.first, &e.FirstStep, -1}, {&c.last, &e.LastStep, -1},
	} {
		if *f.to, err = f.column.number(f.none); err != nil {
			return e, err
		}
	}
	reward, ok, err := c.reward.value()
	if err != nil {
		return e, err
	}
	if ok {
		e.Reward = reward.Double()
	}
	if start != 0 {
		e.Start = time.UnixMicro(int64(start)).UTC()
	}
	e.Duration = time.Duration(duration)
	e.Failures, err = c.failures()
	return e, err
}

// failures reads the failures of a row.
func (c *entryColumns) failures() (list []art.Failure, err error) {
	err = c.scenario.elements(func(_ int, v *parquet.Value) {
		list = append(list, art.Failure{Scenario: int(v.Int64())})
	})
	const what = "scenarios of failures"
	n := len(list)
	return list, errors.Join(err,
		c.attempt.fill(n, what, func(i int, v *parquet.Value) { list[i].Attempt = int(v.Int64()) }),
		c.tries.fill(n, what, func(i int, v *parquet.Value) { list[i].Tries = int(v.Int64()) }),
		c.kind.fill(n, what, func(i int, v *parquet.Value) { list[i].Type = string(v.ByteArray()) }),
		c.message.fill(n, what, func(i int, v *parquet.Value) { list[i].Message = string(v.ByteArray()) }),
		c.stack.fill(n, what, func(i int, v *parquet.Value) { list[i].Stack = string(v.ByteArray()) }),
	)
}

// textColumns reads what was said. A message is an element of its row, a tool call an element of a message.
type textColumns struct {
	group, trajectory              column
	role, content, reasoning, name column // one value per message
	callID, callName, arguments    column // one value per tool call
}

// all are the columns with their names.
func (c *textColumns) all() map[string]*column {
	return map[string]*column{
		"group_index": &c.group, "trajectory_index": &c.trajectory,
		"messages.list.element.role": &c.role, "messages.list.element.content": &c.content,
		"messages.list.element.reasoning": &c.reasoning, "messages.list.element.name": &c.name,
		"messages.list.element.tool_calls.list.element.id":        &c.callID,
		"messages.list.element.tool_calls.list.element.name":      &c.callName,
		"messages.list.element.tool_calls.list.element.arguments": &c.arguments,
	}
}

// text is a row: its messages without samples. trajectory is -1 for a group without trajectories.
type text struct {
	group, trajectory int
	messages          []art.Message
}

// row reads the next row.
func (c *textColumns) row() (t text, err error) {
	if t.group, err = c.group.number(0); err != nil {
		return t, err
	}
	if t.trajectory, err = c.trajectory.number(-1); err != nil {
		return t, err
	}
	if t.messages, err = c.messages(); err != nil {
		return t, err
	}
	return t, c.calls(t.messages)
}

// messages reads the messages of a row but for their tool calls.
func (c *textColumns) messages() (list []art.Message, err error) {
	err = c.role.elements(func(_ int, v *parquet.Value) {
		list = append(list, art.Message{Role: art.Role(v.ByteArray())})
	})
	const what = "roles of messages"
	n := len(list)
	return list, errors.Join(err,
		c.content.fill(n, what, func(i int, v *parquet.Value) { list[i].Content = string(v.ByteArray()) }),
		c.reasoning.fill(n, what, func(i int, v *parquet.Value) { list[i].Reasoning = string(v.ByteArray()) }),
		c.name.fill(n, what, func(i int, v *parquet.Value) { list[i].Name = string(v.ByteArray()) }),
	)
}

// calls reads the tool calls of the messages of a row.
func (c *textColumns) calls(messages []art.Message) error {
	type call struct {
		art.ToolCall
		message int
	}
	var list []call
	err := c.callName.elements(func(message int, v *parquet.Value) {
		list = append(list, call{art.ToolCall{Name: string(v.ByteArray())}, message})
	})
	const what = "names of tool calls"
	n := len(list)
	err = errors.Join(err,
		c.callID.fill(n, what, func(i int, v *parquet.Value) { list[i].ID = string(v.ByteArray()) }),
		c.arguments.fill(n, what, func(i int, v *parquet.Value) { list[i].Arguments = string(v.ByteArray()) }),
	)
	for _, l := range list {
		if l.message >= len(messages) {
			return fmt.Errorf("a row has %d messages and a tool call in number %d", len(messages), l.message)
		}
		m := &messages[l.message]
		m.ToolCalls = append(m.ToolCalls, l.ToolCall)
	}
	return err
}
