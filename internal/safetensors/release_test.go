package safetensors

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRelease: a tensor reads the same after its pages were let go, from any element on, and so do its neighbours.
func TestRelease(t *testing.T) {
	values := make([]float32, 5000)
	for i := range values {
		values[i] = float32(i)
	}
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, singleName))
	require.NoError(t, err)
	require.NoError(t, Write(f, []Tensor{NewFloat32("a", []int{3}, values[:3]), NewFloat32("b", []int{50, 100}, values),
		NewFloat32("c", []int{2}, values[:2])}, nil))
	require.NoError(t, f.Close())
	s, err := OpenIndex(dir)
	require.NoError(t, err)
	defer s.Close()
	for _, name := range []string{"b", "a", "b", "unknown"} {
		s.Release(name)
		for name, want := range map[string][]float32{"a": values[:3], "b": values, "c": values[:2]} {
			x, _ := s.Tensor(name)
			got := make([]float32, len(want)-1)
			x.Read(got, 1)
			require.Equal(t, want[1:], got, name)
		}
	}
}
