package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeepPrograms: each job has a folder of its own, and programs that an earlier run has left there count as read.
func TestKeepPrograms(t *testing.T) {
	root := t.TempDir()
	t.Setenv(cacheEnv, root)
	o := options{name: "xla:/some/plugin.so", shape: "tiny", batch: 1, tokens: 8}
	open := func(job string, o options) (kept func(int) int, folder string) {
		require.NoError(t, os.Setenv(cacheEnv, root))
		kept, err := keepPrograms(job, o)
		require.NoError(t, err)
		folder = os.Getenv(cacheEnv)
		require.Equal(t, root, filepath.Dir(folder))
		return kept, folder
	}
	kept, folder := open("decode", o)
	compiles := func(names ...string) {
		require.NoError(t, os.MkdirAll(folder, 0o700))
		for _, name := range names {
			require.NoError(t, os.WriteFile(filepath.Join(folder, name+".pjrt"), nil, 0o600))
		}
	}
	compiles("a", "b")
	require.Zero(t, kept(2))
	require.Zero(t, kept(3), "one could not be stored")

	kept, again := open("decode", o)
	require.Equal(t, folder, again)
	require.Equal(t, 2, kept(2))
	compiles("c")
	require.Equal(t, 2, kept(3))

	o.batch = 64
	_, other := open("decode", o)
	require.NotEqual(t, folder, other)
	_, other = open("grpo", options{})
	require.NotEqual(t, folder, other)

	require.NoError(t, os.Unsetenv(cacheEnv))
	kept, err := keepPrograms("decode", o)
	require.NoError(t, err)
	require.Zero(t, kept(2))
}
