package model

import (
	"cmp"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/safetensors"
)

// TestBFloat16: the nearest number, of two the even one. The values are those of the IEEE 754 rules, worked out by
// hand.
func TestBFloat16(t *testing.T) {
	for in, want := range map[uint32]uint16{
		0x3f800000: 0x3f80,                                         // 1
		0x3f808000: 0x3f80, 0x3f818000: 0x3f82, 0x3f808001: 0x3f81, // ties, and one above
		0x80000000: 0x8000, 0xbf80ffff: 0xbf81, // signs
		0x7f7fffff: 0x7f80, 0xff7f8000: 0xff80, 0x7f7f7fff: 0x7f7f, // beyond the largest, and it
		0x7f800000: 0x7f80, 0xff800000: 0xff80, // infinities
		0x7f800001: 0x7fc0, 0xffffffff: 0xffff, // NaN
		0x00000001: 0x0000, 0x00008001: 0x0001, // denormals
	} {
		require.Equal(t, want, toBFloat16(math.Float32frombits(in)), "%08x", in)
	}
}

// TestCheckpoint_Save: shards obey their bound, and together hold what one file holds, edited and in the given type.
func TestCheckpoint_Save(t *testing.T) {
	w := testWeights(t, smallConfig(false))
	from := t.TempDir()
	require.NoError(t, w.Save(from))
	c, err := Open(from)
	require.NoError(t, err)
	defer c.Close()
	edit := func(name string, values []float32) error {
		if name == "model.norm.weight" {
			values[0] = 7
		}
		return nil
	}
	for _, bound := range []int64{0, 1, 200, 1 << 20} {
		for _, dtype := range []string{"", Float32, BFloat16} {
			dir := t.TempDir()
			require.NoError(t, c.Save(dir, &SaveOptions{DType: dtype, ShardBytes: bound, Edit: edit}))
			got, err := Load(dir)
			require.NoError(t, err)
			for i, x := range got.Tensors {
				want := append([]float32{}, w.Tensors[i].Data...)
				require.NoError(t, edit(x.Name, want))
				if dtype == BFloat16 {
					for j := range want {
						want[j] = math.Float32frombits(uint32(toBFloat16(want[j])) << 16)
					}
				}
				sameBits(t, want, x.Data, "%s", x.Name)
			}
			require.Equal(t, cmp.Or(dtype, Float32), got.Config.TorchDType)
			checkShards(t, dir, bound)
		}
	}
	require.ErrorContains(t, c.Save(t.TempDir(), &SaveOptions{DType: "int8"}), "float32 or bfloat16")
	require.ErrorContains(t, c.Save(t.TempDir(), &SaveOptions{ShardBytes: -1}), "not negative")
	broken := errors.New("broken")
	dir := t.TempDir()
	require.ErrorIs(t, c.Save(dir, &SaveOptions{Edit: func(string, []float32) error { return broken }}), broken)
	require.NoFileExists(t, filepath.Join(dir, ConfigFile), "a folder that is not complete is no model")
}

// checkShards checks the sizes of files: a shard above the bound has one tensor.
func checkShards(t *testing.T, dir string, bound int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	require.NoError(t, err)
	if bound == 0 || bound == 1<<20 {
		require.Equal(t, []string{filepath.Join(dir, WeightsFile)}, files)
		return
	}
	require.Greater(t, len(files), 1)
	for _, path := range files {
		f, err := safetensors.Open(path)
		require.NoError(t, err)
		var sum int64
		for _, name := range f.Names() {
			x, _ := f.Tensor(name)
			sum += int64(len(x.Data))
		}
		require.True(t, sum <= bound || len(f.Names()) == 1, "%s has %d bytes", path, sum)
		require.NoError(t, f.Close())
	}
	_, err = os.Stat(filepath.Join(dir, indexFile))
	require.NoError(t, err)
}
