package runs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/goart-dev/art"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// formatKey names the format of the columns in the metadata of a file.
const formatKey = "art.trajectories"

// checkColumns refuses a file with columns of another format.
func checkColumns(file *parquet.File) error {
	text, _ := file.Lookup(formatKey)
	have, err := strconv.Atoi(text)
	if err != nil || have < 1 {
		return fmt.Errorf("it has columns of format %q, which no version of art wrote", text)
	}
	return checkFormat("the file", have, trajectoryFormat)
}

// encodeGroups returns the content of a trajectory file.
func encodeGroups(groups []*art.TrajectoryGroup) ([]byte, error) {
	var rows []trajectoryRow
	for i, g := range groups {
		group, err := groupRows(g, i)
		if err != nil {
			return nil, fmt.Errorf("group %d: %w", i, err)
		}
		rows = append(rows, group...)
	}
	content, err := writeRows(rows)
	if err != nil {
		return nil, err
	}
	return seal(content)
}

// groupRows returns the rows of a group: one per trajectory, or one for none.
func groupRows(g *art.TrajectoryGroup, index int) ([]trajectoryRow, error) {
	if g == nil {
		return nil, errors.New("it is nil")
	}
	rows := make([]trajectoryRow, max(1, len(g.Trajectories)))
	for i, t := range g.Trajectories {
		if t == nil {
			return nil, fmt.Errorf("trajectory %d is nil", i)
		}
		var err error
		if rows[i], err = toTrajectoryRow(t); err != nil {
			return nil, fmt.Errorf("trajectory %d: %w", i, err)
		}
		rows[i].TrajectoryIndex = number(i)
	}
	var err error
	rows[0].Group, err = toGroupRow(g)
	for i := range rows {
		rows[i].GroupIndex = int64(index)
		makeExact(&rows[i])
	}
	return rows, err
}

// writeRows returns a Parquet file.
func writeRows(rows []trajectoryRow) (content []byte, err error) {
	defer catch(&err)
	var b bytes.Buffer
	w := parquet.NewGenericWriter[trajectoryRow](&b,
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedDefault}),
		parquet.KeyValueMetadata(formatKey, strconv.Itoa(trajectoryFormat)),
	)
	if _, err := w.Write(rows); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// decodeGroups is the inverse of encodeGroups.
func decodeGroups(content []byte) ([]*art.TrajectoryGroup, error) {
	content, err := unseal(content)
	if err != nil {
		return nil, err
	}
	rows, err := readRows(content)
	if err != nil {
		return nil, err
	}
	return joinGroups(rows)
}

// joinGroups is the inverse of groupRows for all groups.
func joinGroups(rows []trajectoryRow) (groups []*art.TrajectoryGroup, err error) {
	for i := range rows {
		if groups, err = addRow(groups, &rows[i]); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
	}
	return groups, nil
}

// readRowsBatch is the number of rows read at a time: no memory is allocated for the number of rows that a file claims.
const readRowsBatch = 64

// readRows is the inverse of writeRows.
func readRows(content []byte) (rows []trajectoryRow, err error) {
	defer catch(&err)
	file, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	if err := checkColumns(file); err != nil {
		return nil, err
	}
	r := parquet.NewGenericReader[trajectoryRow](file)
	defer r.Close()
	for batch := make([]trajectoryRow, readRowsBatch); ; clear(batch) {
		n, err := r.Read(batch)
		rows = append(rows, batch[:n]...)
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil || n == 0 {
			return nil, fmt.Errorf("it has %d rows of %d: %w", len(rows), file.NumRows(), err)
		}
	}
}

// addRow appends a row to the last group, or begins a group with it.
func addRow(groups []*art.TrajectoryGroup, row *trajectoryRow) ([]*art.TrajectoryGroup, error) {
	if err := applyExact(row); err != nil {
		return nil, err
	}
	if row.Group != nil {
		g, err := fromGroupRow(row.Group)
		if err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	if row.GroupIndex != int64(len(groups)-1) {
		return nil, fmt.Errorf("it is of group %d after %d groups", row.GroupIndex, len(groups))
	}
	if row.TrajectoryIndex == nil {
		return groups, nil
	}
	t, err := fromTrajectoryRow(row)
	if err != nil {
		return nil, err
	}
	g := groups[len(groups)-1]
	g.Trajectories = append(g.Trajectories, t)
	return groups, nil
}

// catch returns a panic of the Parquet library, which is how it reports some damage, as an error.
func catch(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("parquet: %v", p)
	}
}
