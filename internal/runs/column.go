package runs

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// columns reads rows column by column. A generic reader of rows takes several times as long, and the page of runs looks
// through 100,000 trajectories while somebody waits.
type columns interface {
	// all are the columns by their paths.
	all() map[string]*column
}

// scanColumns calls yield at each row of a file, which has to take the values of the row from all columns, until it
// returns false.
func scanColumns(file *parquet.File, c columns, yield func() (bool, error)) error {
	for _, rows := range file.RowGroups() {
		more, err := scanRowGroup(file.Schema(), rows, c.all(), yield)
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
			c.close()
		}
	}()
	for path, c := range all {
		if err := c.open(schema, rows, path); err != nil {
			return false, err
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

// open begins a row group.
func (c *column) open(schema *parquet.Schema, rows parquet.RowGroup, path string) error {
	found, ok := schema.Lookup(strings.Split(path, ".")...)
	if !ok {
		return fmt.Errorf("it has no column %s", path)
	}
	c.reader = parquet.NewColumnChunkValueReader(rows.ColumnChunks()[found.ColumnIndex])
	c.full, c.next = found.MaxDefinitionLevel, nil
	if c.buffer == nil {
		c.buffer = make([]parquet.Value, 256)
	}
	return nil
}

func (c *column) close() {
	if c.reader != nil {
		_ = c.reader.Close() // nothing is written
		c.reader = nil
	}
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

// texts is elements of a column of texts.
func (c *column) texts(yield func(element int, text string)) error {
	return c.elements(func(element int, v *parquet.Value) { yield(element, string(v.ByteArray())) })
}
