package local

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/backendtest"
)

func open(t testing.TB, dir string) *Backend {
	b, err := Open(context.Background(), &Options{Dir: dir, Slots: 8, Context: 256, Progress: io.Discard})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func TestContract(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) art.Backend { return open(t, t.TempDir()) })
}

// TestLearning: the built-in model learns to tell a chat with a tool from one without.
func TestLearning(t *testing.T) {
	backendtest.RunLearning(t, func(t *testing.T) art.Backend {
		b, err := Open(context.Background(), &Options{Dir: t.TempDir(), Slots: 48, Context: 256, Progress: io.Discard})
		require.NoError(t, err)
		return b
	}, nil)
}
