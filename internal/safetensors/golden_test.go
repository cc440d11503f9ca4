package safetensors

import (
	"bytes"
	"flag"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite testdata/go.safetensors; check it with testdata/python.py")

// python.safetensors was written by the reference implementation; the command is in testdata/python.py.
func TestOpen_Python(t *testing.T) {
	f, err := Open("testdata/python.safetensors")
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, map[string]string{"format": "np", "note": `a "b" <c>`}, f.Metadata())
	require.ElementsMatch(t, []string{"weight", "half", "scalar", "none", "mask", `żółw "q"`}, f.Names())

	weight, ok := f.Tensor("weight")
	require.True(t, ok)
	require.Equal(t, []int{2, 3}, weight.Shape)
	values, err := weight.Float32s()
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1.0 / 3, 2.0 / 3, 1, 4.0 / 3, 5.0 / 3}, values)

	half, _ := f.Tensor("half")
	values, err = half.Float32s()
	require.NoError(t, err)
	require.Equal(t, []float32{1, float32(math.Copysign(0, -1)), 0x1p-24, 65504, float32(math.Inf(1))}, values[:5])
	require.True(t, math.Signbit(float64(values[1])))
	require.True(t, math.IsNaN(float64(values[5])))

	scalar, _ := f.Tensor("scalar")
	require.Equal(t, Tensor{"scalar", "I64", []int{}, []byte{7, 0, 0, 0, 0, 0, 0, 0}}, scalar)
	_, err = scalar.Float32s()
	require.ErrorContains(t, err, "only F32, F16 and BF16")
	mask, _ := f.Tensor("mask")
	require.Equal(t, Tensor{"mask", "BOOL", []int{3}, []byte{1, 0, 1}}, mask)
	none, _ := f.Tensor("none")
	require.Equal(t, []int{0, 4}, none.Shape)
	require.Empty(t, none.Data)
	_, ok = f.Tensor("missing")
	require.False(t, ok)
}

// go.safetensors is what Write writes. After -update, testdata/python.py checks that the reference implementation
// reads the same values.
func TestWrite_Golden(t *testing.T) {
	weight := NewFloat32("weight", []int{2, 3}, []float32{
		0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, float32(math.Inf(1)), math.MaxFloat32, 1.0 / 3,
	})
	tensors := []Tensor{
		{"bytes", "U8", []int{3}, []byte{1, 2, 3}}, // what follows is not aligned
		weight,
		{"none", F16, []int{0, 4}, nil},
		{`żółw "q"`, "I8", nil, []byte{0xfb}},
	}
	var b bytes.Buffer
	require.NoError(t, Write(&b, tensors, map[string]string{"note": `a "b" <c> żółw`, "format": "pt"}))
	if *update {
		require.NoError(t, os.WriteFile("testdata/go.safetensors", b.Bytes(), 0o644))
	}
	want, err := os.ReadFile("testdata/go.safetensors")
	require.NoError(t, err)
	require.Equal(t, want, b.Bytes())
}
