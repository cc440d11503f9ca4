//go:build cgo

package main

import (
	"os"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"
)

// TestDraw: the weights are made on the device, in their type, and the host has no copy of them.
func TestDraw(t *testing.T) {
	device, err := openDevice("xla:cpu,noshared_buffers") // as with a GPU
	if err != nil {
		if os.Getenv("ART_REQUIRE_XLA") != "" {
			t.Fatalf("ART_REQUIRE_XLA is set: %v", err)
		}
		t.Skipf("NOT TESTED ON XLA: %v", err)
	}
	c, err := configOf("tiny")
	require.NoError(t, err)
	for _, matrices := range []dtypes.DType{dtypes.BFloat16, dtypes.Int8} {
		params, err := draw(device, c, matrices)
		require.NoError(t, err)
		at := 0
		for _, spec := range c.Specs() {
			x, want := params.Tensors[at], dtypes.Float32
			if len(spec.Shape) == 2 {
				want = matrices
			}
			require.Equal(t, spec.Name, params.Names[at])
			require.Equal(t, want, x.DType(), spec.Name)
			require.Equal(t, spec.Shape, x.Shape().Dimensions, spec.Name)
			require.True(t, x.IsOnDevice(0), spec.Name)
			require.False(t, x.IsLocal(), spec.Name)
			if at++; want == dtypes.Int8 {
				require.Equal(t, spec.Name+".scale", params.Names[at])
				require.Equal(t, spec.Shape[:1], params.Tensors[at].Shape().Dimensions)
				at++
			}
		}
		require.Len(t, params.Names, at)
	}
}
