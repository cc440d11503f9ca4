package runs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// TestSaveWeights_Names: weights are stored once under a name, found by a reference, listed, and deleted.
func TestSaveWeights_Names(t *testing.T) {
	r := openTemp(t, 1)
	write := func(dir string) error { return writeFiles(dir, stepFiles(7)) }
	require.NoError(t, r.SaveWeights("000020", write))
	require.NoError(t, r.SaveWeights("final", write))
	require.ErrorIs(t, r.SaveWeights("final", write), art.ErrInvalid)
	require.ErrorIs(t, r.SaveWeights("a/b", write), art.ErrInvalid)
	require.Equal(t, []int{0, 1}, r.Steps())

	ref, err := ParseReference(r.WeightsReference("000020").String(), "")
	require.NoError(t, err)
	require.Equal(t, "project/model@weights/000020", ref.String())
	reader, err := NewReader(r.Dir())
	require.NoError(t, err)
	dir, err := reader.Find(ref.Step)
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(dir, "adapter.bin"))
	require.NoError(t, err)
	require.Equal(t, stepFiles(7)["adapter.bin"], string(content))
	dir, err = reader.Find("1")
	require.NoError(t, err)
	require.Equal(t, "0001", filepath.Base(dir))
	_, err = reader.Find("weights/none")
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, "final")
	_, err = reader.Resolve("weights/final")
	require.ErrorIs(t, err, art.ErrInvalid)

	list, err := r.SavedWeights()
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Positive(t, list[0].Bytes)
	require.NoError(t, r.DeleteWeights("000020"))
	require.ErrorIs(t, r.DeleteWeights("000020"), art.ErrInvalid)
	require.NoError(t, os.Truncate(filepath.Join(r.Dir(), "weights", "final", "adapter.bin"), 5))
	_, err = r.WeightsDir("final")
	require.ErrorIs(t, err, art.ErrCorrupt)
}

// TestSaveWeights_EachFault: a failure of any change leaves no weights or whole ones, and the steps as they were; what
// an interruption leaves is removed when the run is opened.
func TestSaveWeights_EachFault(t *testing.T) {
	for at := 0; ; at++ {
		root := tempDir(t)
		makeTwoSteps(t, root)
		f := &fault{at: -1, err: syscall.EIO}
		r, err := openRun(root, f.disk())
		require.NoError(t, err)
		f.at, f.seen = at, 0
		err = r.SaveWeights("w", func(dir string) error { return writeFiles(dir, stepFiles(7)) })
		done := f.seen <= at
		require.Equal(t, done, err == nil, "change %d: %v", at, err)
		f.at = -1
		r, err = reopen(t, r)
		require.NoError(t, err)
		require.Equal(t, []int{0, 1}, r.Steps())
		if _, err = r.WeightsDir("w"); err != nil {
			require.ErrorIs(t, err, art.ErrInvalid)
			require.NoError(t, r.SaveWeights("w", func(dir string) error { return writeFiles(dir, stepFiles(7)) }))
		}
		if done {
			require.NoError(t, err)
			return
		}
	}
}

// TestSaveWeights_FailedWrite stores nothing.
func TestSaveWeights_FailedWrite(t *testing.T) {
	r := openTemp(t, 0)
	require.ErrorIs(t, r.SaveWeights("w", func(string) error { return errors.New("no") }), art.ErrStorage)
	list, err := r.SavedWeights()
	require.NoError(t, err)
	require.Empty(t, list)
}
