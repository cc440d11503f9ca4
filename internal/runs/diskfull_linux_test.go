package runs

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// A disk that is really full. It needs the right to mount; TestFault_DiskStaysFull holds the guarantee elsewhere.
func TestFullDisk(t *testing.T) {
	root := t.TempDir()
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("no right to mount a small file system: ", err)
	}
	defer func() { require.NoError(t, syscall.Unmount(root, 0)) }()
	r, err := openRun(root, disk{})
	require.NoError(t, err)
	for err == nil {
		require.Less(t, r.Next(), 100, "the disk does not fill up")
		err = makeStep(r, r.Next())
	}
	require.ErrorIs(t, err, art.ErrStorage)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "free some space")
	steps := r.Next()
	require.Greater(t, steps, 1)
	require.NoError(t, r.Close())

	r, err = openRun(root, disk{})
	require.NoError(t, err)
	checkRun(t, r)
	require.Equal(t, steps, r.Next())

	huge := func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "huge"), []byte(strings.Repeat("x", 2<<20)), 0o644)
	}
	require.ErrorIs(t, r.Commit(steps, huge), syscall.ENOSPC)
	require.NoError(t, r.DeleteCheckpoints(nil)) // makes room, on a full disk
	require.NoError(t, makeStep(r, steps))
	require.NoError(t, r.Close())
}
