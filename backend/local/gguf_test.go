package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/gguftest"
)

// TestRegister_GGUF: the built-in model as a GGUF file computes what the built-in model computes, and a run on it is
// resumed with the same file, wherever it is then. Such a file names a known way to cut words, and the built-in model
// has its own, so that the ids are given.
func TestRegister_GGUF(t *testing.T) {
	b, path := open(t, t.TempDir()), gguftest.Folder(t, "../../model/tiny")
	logprobs := func(name, base string) []float32 {
		m := art.NewModel(name, &art.ModelOptions{Base: base, Frozen: true})
		require.NoError(t, m.Register(t.Context(), b))
		scores, _, err := b.Logprobs(t.Context(), m, []int32{72, 101, 108, 108, 111, 10, 65})
		require.NoError(t, err)
		return scores
	}
	require.Equal(t, logprobs("builtin", "tiny"), logprobs("file", path))

	dir := t.TempDir()
	register := func(base string) error {
		b := open(t, dir)
		defer func() { require.NoError(t, b.Close()) }()
		return art.NewModel("run", &art.ModelOptions{Base: base}).Register(t.Context(), b)
	}
	require.NoError(t, register(path))
	moved := filepath.Join(t.TempDir(), "moved.gguf")
	require.NoError(t, os.Rename(path, moved))
	require.NoError(t, register(moved))

	content, err := os.ReadFile(moved)
	require.NoError(t, err)
	content[len(content)-1] ^= 1 // a weight
	require.NoError(t, os.WriteFile(moved, content, 0o600))
	err = register(moved)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, "was made with")
}

// TestRegister_GGUFErrors: a file that cannot be used is named, with what is wrong.
func TestRegister_GGUFErrors(t *testing.T) {
	b := open(t, t.TempDir())
	path := filepath.Join(t.TempDir(), "model.gguf")
	require.NoError(t, os.WriteFile(path, []byte("GGUF"), 0o600))
	err := art.NewModel("run", &art.ModelOptions{Base: path}).Register(t.Context(), b)
	require.ErrorIs(t, err, art.ErrBaseModel)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "truncated")
}
