package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/model"
)

func TestTraining_MicroTokens(t *testing.T) {
	for _, c := range []struct {
		config model.Config
		want   int
	}{
		{model.Config{NumLayers: 1, HiddenSize: 1, NumHeads: 1, HeadDim: 1, IntermediateSize: 1}, 4096},
		{*smol, 582},
		{model.Config{NumLayers: 28, HiddenSize: 3584, NumHeads: 28, HeadDim: 128, IntermediateSize: 18944}, 256},
	} {
		require.Equal(t, Sizes{Workers: 3, MicroTokens: c.want}, Training{Config: &c.config}.WithDefaults(Sizes{Workers: 3}))
	}
}

// TestTraining_OwnMemory: of the copies a GPU holds those on the device alone; what is computed takes the same.
func TestTraining_OwnMemory(t *testing.T) {
	machine, gpu := graphx.NamedProfile("xla:cpu"), graphx.NamedProfile("xla:cuda")
	adapter, full := Training{Config: qwen, Params: 1e6}, TrainingOf(qwen, nil)
	for _, c := range []struct {
		training     Training
		all, onThere float64 // copies
	}{{adapter, 16, 5}, {full, 13, 7}} {
		c.training.On = machine
		there := c.training.Memory(Sizes{Workers: 1}, 512)
		c.training.On = gpu
		on := c.training.Memory(Sizes{Workers: 1}, 512)
		require.Equal(t, c.all*4*c.training.Params, there.Adapter)
		require.Equal(t, c.onThere*4*c.training.Params, on.Adapter)
		require.Equal(t, there.Work, on.Work)
	}
}

// TestTraining_Padded: a device that takes long to compile pads sequences to a power of two, and does not say what
// programs take.
func TestTraining_Padded(t *testing.T) {
	of := func(device string, length int) Memory {
		return Training{Config: qwen, On: graphx.NamedProfile(device), Params: 1e6}.Memory(Sizes{MicroTokens: 512}, length)
	}
	require.Equal(t, of("xla:cuda", 512), of("xla:cuda", 300))
	require.Zero(t, of("xla:cuda", 300).Programs)
	require.Less(t, of("cpu", 300).Work, of("cpu", 512).Work)
	require.NotZero(t, of("cpu", 300).Programs)
}
