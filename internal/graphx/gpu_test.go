package graphx_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx"
)

// TestNamedGPU: the options of a name say which GPU it is, and how much of its memory is taken.
func TestNamedGPU(t *testing.T) {
	for name, want := range map[string]graphx.GPU{
		"xla:cuda": {Fraction: 0.75},
		"xla:cuda,device=2,memory_fraction=0.9,tf32=true": {Number: 2, Fraction: 0.9},
		"xla:cuda,preallocate=true":                       {Fraction: 0.75, Preallocated: true},
	} {
		got, err := graphx.NamedGPU(name)
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}
	for name, says := range map[string]string{
		"xla": "its name is xla:cuda", "xla:/plugin.so": "its name is xla:cuda", "cpu": "its name is xla:cuda",
		"xla:cuda,visible_devices=1": "CUDA_VISIBLE_DEVICES", "xla:cuda,device=x": `option "device=x"`,
	} {
		_, err := graphx.NamedGPU(name)
		require.ErrorContains(t, err, says, name)
	}
}
