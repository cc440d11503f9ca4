//go:build !windows

package runs

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// inodeOf identifies a file or folder, whatever its name becomes.
func inodeOf(t *testing.T, path string) inode {
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return inode(info.Sys().(*syscall.Stat_t).Ino)
}
