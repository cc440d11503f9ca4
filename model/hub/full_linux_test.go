package hub

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/dev/hubtest"
)

// TestPull_FullDisk: a disk that is full ends a pull with an error that says so, nothing is taken for complete, and the
// next pull continues.
func TestPull_FullDisk(t *testing.T) {
	server, opts := start(t, modelFiles())
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	full := before
	full.Cur = 1_234_567 // no file grows beyond that, like a disk without room: a write is short, and the next one fails
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full))
	defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before) }()
	_, err := Pull(t.Context(), repo, opts)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))
	require.ErrorIs(t, err, syscall.EFBIG)
	require.ErrorContains(t, err, "room for 1765433 more bytes")
	_, err = Cached(repo, opts)
	require.Error(t, err)
	require.Contains(t, blobs(t, opts), hubtest.SHA256(server.Files["model.safetensors"])+".incomplete")
	server.Requests()
	s, err := Pull(t.Context(), repo, opts)
	require.NoError(t, err)
	checkFiles(t, server, s, plainNames...)
	for _, r := range downloads(server.Requests()) {
		require.Equal(t, "bytes=1234567-", r.Range)
	}
}
