package runs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// setFormat replaces the number of the format in a JSON file; "" removes it.
func setFormat(t *testing.T, path, to string) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	field := regexp.MustCompile(`"format": ?1,`)
	require.Regexp(t, field, string(content))
	if to != "" {
		to = `"format":` + to + `,`
	}
	require.NoError(t, os.WriteFile(path, field.ReplaceAll(content, []byte(to)), 0o644))
}

// jsonFormats are the files that carry the format of those beside them.
var jsonFormats = []string{historySumName, "checkpoints/0003/" + manifestName, "checkpoints/0001/" + manifestName}

// A newer version of art wrote one of the files: nothing is changed, and the error says what to do.
func TestFormat_Newer(t *testing.T) {
	for _, name := range jsonFormats {
		r := threeSteps(t)
		path := filepath.Join(r.Dir(), filepath.FromSlash(name))
		setFormat(t, path, "2")
		require.NoError(t, os.WriteFile(filepath.Join(r.Dir(), tempPrefix+"x"), nil, 0o644)) // which recovery would remove
		before := listing(t, r.Dir())
		_, err := openRun(filepath.Join(r.Dir(), "..", "..", ".."), disk{})
		requireUpgrade(t, err, path+" has format 2")
		require.Equal(t, before, listing(t, r.Dir()))
	}
}

// requireUpgrade requires the error of a newer format.
func requireUpgrade(t *testing.T, err error, text string) {
	t.Helper()
	require.ErrorIs(t, err, art.ErrUnsupported)
	require.NotErrorIs(t, err, art.ErrCorrupt)
	require.ErrorContains(t, err, text)
	require.ErrorContains(t, err, "upgrade with go get github.com/goart-dev/art@latest")
}

// Readers without the lock refuse it too.
func TestFormat_NewerRead(t *testing.T) {
	r := threeSteps(t)
	reader, err := NewReader(r.Dir())
	require.NoError(t, err)
	setFormat(t, filepath.Join(r.Dir(), historySumName), "2")
	_, err = reader.History()
	requireUpgrade(t, err, "has format 2")
	setFormat(t, filepath.Join(r.checkpointDir(2), manifestName), "2")
	_, err = reader.Checkpoint(2)
	requireUpgrade(t, err, "has format 2")
}

// Files before v0.1.0 had no numbers.
func TestFormat_Missing(t *testing.T) {
	r := threeSteps(t)
	for _, name := range jsonFormats {
		setFormat(t, filepath.Join(r.Dir(), filepath.FromSlash(name)), "")
	}
	again, _ := openLogged(t, r)
	require.Zero(t, again.Damage())
	require.NoError(t, again.Verify(1))
}

// TestFormat_FurtherColumn: what a later version stores beside the columns of this one does not change how they are
// read.
func TestFormat_FurtherColumn(t *testing.T) {
	groups := []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{Reward: 1}, {Reward: 2}}}}
	rows, err := groupRows(groups[0], 0)
	require.NoError(t, err)
	type laterRow struct {
		trajectoryRow
		Later []string `parquet:"later,list"`
	}
	later := make([]laterRow, len(rows))
	for i, row := range rows {
		later[i] = laterRow{row, []string{"a", "b"}}
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[laterRow](&b, parquet.KeyValueMetadata(formatKey, strconv.Itoa(trajectoryFormat)))
	_, err = w.Write(later)
	require.NoError(t, errors.Join(err, w.Close()))
	content, err := seal(b.Bytes())
	require.NoError(t, err)
	got, err := decodeGroups(content)
	require.NoError(t, err)
	content, err = encodeGroups(groups)
	require.NoError(t, err)
	want, err := decodeGroups(content)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// The format of a Parquet file is in its metadata.
func TestFormat_Columns(t *testing.T) {
	groups := []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{Reward: 1}}}}
	for format, newer := range map[int]bool{0: false, trajectoryFormat + 1: true} {
		r := openTemp(t, 0)
		require.NoError(t, r.WriteTrajectories("val", 0, groups))
		path := r.trajectoryPath("val", 0)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		content, err = unseal(content)
		require.NoError(t, err)
		written := regexp.MustCompile(formatKey + "(.{1,3})" + strconv.Itoa(trajectoryFormat))
		require.Regexp(t, written, string(content))
		content = written.ReplaceAll(content, fmt.Appendf(nil, "%s${1}%d", formatKey, format))
		content, err = seal(content)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, content, 0o644))
		reader, err := NewReader(r.Dir())
		require.NoError(t, err)
		_, errRead := r.ReadTrajectories("val", 0)
		_, errIndex := reader.Index("val", 0)
		for _, err := range []error{errRead, errIndex} {
			if newer {
				requireUpgrade(t, err, path)
			} else {
				require.ErrorIs(t, err, art.ErrCorrupt)
			}
		}
	}
}
