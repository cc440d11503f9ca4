package lora

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/safetensors"
)

// FuzzParse: any two files are refused, or are an adapter that is written and read back equal, and that merges.
func FuzzParse(f *testing.F) {
	a, err := New(Config{Rank: 1, Targets: []string{"q"}},
		[]LayerShape{{Name: "a.q", In: 2, Out: 3}, {Name: "b.q", In: 1, Out: 1}}, 1)
	require.NoError(f, err)
	dir := f.TempDir()
	require.NoError(f, a.Save(dir, "base"))
	for _, folder := range []string{dir, "testdata/peft"} {
		config, err := os.ReadFile(filepath.Join(folder, configFile))
		require.NoError(f, err)
		weights, err := os.ReadFile(filepath.Join(folder, weightsFile))
		require.NoError(f, err)
		if len(weights) < 1<<12 {
			f.Add(config, weights)
		}
		f.Add(config, []byte("no tensors"))
	}
	f.Fuzz(func(t *testing.T, config, weights []byte) {
		file, err := safetensors.Parse(weights)
		if err != nil {
			return
		}
		first, err := parse(config, file)
		if err != nil {
			return
		}
		numbers := 0
		for _, l := range first.Layers() {
			numbers += len(l.A) + len(l.B)
			if l.In*l.Out < 1<<16 {
				require.NoError(t, first.Merge(make([]float32, l.In*l.Out), l.Name))
			}
		}
		require.LessOrEqual(t, 2*numbers, len(weights), "no more numbers than the file has")

		var b bytes.Buffer
		require.NoError(t, safetensors.Write(&b, first.tensors(), nil))
		again, err := safetensors.Parse(b.Bytes())
		require.NoError(t, err)
		written, err := encodePEFT(first.Config(), first.chosen, "base")
		require.NoError(t, err)
		second, err := parse(written, again)
		require.NoError(t, err)
		require.Equal(t, first.Layers(), second.Layers())
		require.Equal(t, first.Config(), second.Config())
	})
}
