package gguf

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/ggml"
)

// golden is python.gguf, which the reference implementation wrote; the command is in testdata/python.py.
func golden(t *testing.T) *File {
	f, err := Open("testdata/python.gguf")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func TestOpen_Metadata(t *testing.T) {
	f := golden(t)
	require.Equal(t, uint32(3), f.version)
	for name, want := range map[string][2]any{
		"uint8": {uint8(200), []uint8{200, 200}}, "int8": {int8(-100), []int8{-100, -100}},
		"uint16": {uint16(60000), []uint16{60000, 60000}}, "int16": {int16(-30000), []int16{-30000, -30000}},
		"uint32": {uint32(4e9), []uint32{4e9, 4e9}}, "int32": {int32(-2e9), []int32{-2e9, -2e9}},
		"uint64":  {uint64(math.MaxUint64), []uint64{math.MaxUint64, math.MaxUint64}},
		"int64":   {int64(math.MinInt64), []int64{math.MinInt64, math.MinInt64}},
		"float32": {float32(0.1), []float32{0.1, 0.1}}, "float64": {0.1, []float64{0.1, 0.1}},
		"bool": {true, []bool{true, true}}, "string": {"żółw", []string{"żółw", "żółw"}},
	} {
		one, ok := f.Value("one." + name)
		require.True(t, ok, name)
		require.Equal(t, want[0], one)
		list, ok := f.Value("list." + name)
		require.True(t, ok, name)
		require.Equal(t, want[1], list)
	}
	require.Equal(t, []string{"general.architecture", "general.alignment", "one.uint8", "list.uint8"}, f.keys[:4])
	_, ok := f.Value("one")
	require.False(t, ok)
}

// TestFloat32s_Python: every type has the bits that the reference computes.
func TestFloat32s_Python(t *testing.T) {
	f := golden(t)
	compared := 0
	for _, name := range f.Names() {
		expected, ok := f.Tensor(name + ".expected")
		if !ok {
			continue
		}
		compared++
		tensor, _ := f.Tensor(name)
		require.NotEqual(t, ggml.F32, tensor.Type)
		require.Equal(t, strings.ToUpper(name), tensor.Type.String())
		require.Equal(t, expected.Shape, tensor.Shape)
		have, err := tensor.Float32s()
		require.NoError(t, err)
		want, err := expected.Float32s()
		require.NoError(t, err)
		require.Len(t, have, len(want))
		for i := range want {
			require.Equal(t, math.Float32bits(want[i]), math.Float32bits(have[i]), "%s[%d]: %g, the reference has %g", name, i,
				have[i], want[i])
		}
	}
	require.Equal(t, 14, compared, "all but F32 and F16, which follow")

	f32, _ := f.Tensor("f32")
	require.Equal(t, []int{2, 3}, f32.Shape)
	values, err := f32.Float32s()
	require.NoError(t, err)
	require.Equal(t, []float32{1, float32(math.Copysign(0, -1)), 0x1p-149, float32(math.Inf(1)), math.MaxFloat32, 1.0 / 3},
		values)
	require.True(t, math.Signbit(float64(values[1])))
	f16, _ := f.Tensor("f16")
	values, err = f16.Float32s()
	require.NoError(t, err)
	require.Equal(t, []float32{1, 0, 0x1p-24, 65504, float32(math.Inf(1))}, values)
	cube, _ := f.Tensor("cube")
	require.Equal(t, []int{2, 3, 4}, cube.Shape)
	values, err = cube.Float32s()
	require.NoError(t, err)
	require.EqualValues(t, 23, values[23])
	require.EqualValues(t, 4, values[4])
}
