package runs

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/goart-dev/art"
)

// formatKey names the format of the columns in the metadata of a file.
const formatKey = "art.trajectories"

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
		rows[i].TrajectoryIndex = new(int64(i))
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
func decodeGroups(content []byte) (groups []*art.TrajectoryGroup, err error) {
	if content, err = unseal(content); err != nil {
		return nil, err
	}
	err = scanFile(bytes.NewReader(content), int64(len(content)), func(file *parquet.File) error {
		n := 0
		return scanRows(file, 0, func(row *trajectoryRow) (bool, error) {
			if groups, err = addRow(groups, row); err != nil {
				return false, fmt.Errorf("row %d: %w", n, err)
			}
			n++
			return true, nil
		})
	})
	if err != nil {
		return nil, err
	}
	return groups, nil
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

// A Parquet file ends with a footer, its length and a magic number:
//
//	"PAR1" | columns | footer | 4 bytes: length of the footer, little-endian | "PAR1"
//
// Offsets count from the beginning, so bytes between columns and footer are not read. That is where the seal is: the
// SHA-256 of everything else. It is verified before anything in a file is interpreted, and other readers of Parquet do
// not see it.
const tailBytes = 8

// seal inserts the checksum.
func seal(content []byte) ([]byte, error) {
	footer, err := footerStart(content)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	sealed := make([]byte, 0, len(content)+len(sum))
	sealed = append(sealed, content[:footer]...)
	sealed = append(sealed, sum[:]...)
	return append(sealed, content[footer:]...), nil
}

// unseal verifies the checksum and removes it.
func unseal(sealed []byte) ([]byte, error) {
	footer, err := footerStart(sealed)
	if err != nil {
		return nil, err
	}
	if footer < sha256.Size {
		return nil, errors.New("it has no checksum")
	}
	content := append(sealed[:footer-sha256.Size:footer-sha256.Size], sealed[footer:]...)
	if sha256.Sum256(content) != [sha256.Size]byte(sealed[footer-sha256.Size:footer]) {
		return nil, errors.New("its content does not match its checksum")
	}
	return content, nil
}

// footerStart returns where the footer begins.
func footerStart(content []byte) (int, error) {
	size, err := footerSize(content[max(0, len(content)-tailBytes):], int64(len(content)))
	return len(content) - tailBytes - size, err
}

// footerSize reads the length of the footer from the last bytes of a file of that size.
func footerSize(tail []byte, size int64) (int, error) {
	if len(tail) < tailBytes || string(tail[len(tail)-4:]) != "PAR1" {
		return 0, errors.New("it is not a complete Parquet file")
	}
	footer := binary.LittleEndian.Uint32(tail)
	if int64(footer) > size-tailBytes {
		return 0, errors.New("its footer is longer than the file")
	}
	return int(footer), nil
}
