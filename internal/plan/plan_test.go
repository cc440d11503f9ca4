package plan

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/dev/fixtures"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/tiny"
)

// qwen is the shape of Qwen3-0.6B, whose cache of 32 slots takes 280 GiB; smol that of SmolLM2-135M, 11 GiB.
var (
	qwen = &model.Config{
		ModelType: "qwen3", HiddenAct: "silu", VocabSize: 151936, HiddenSize: 1024, IntermediateSize: 3072,
		NumLayers: 28, NumHeads: 16, NumKVHeads: 8, HeadDim: 128, MaxPositions: 40960, RMSNormEps: 1e-6, RopeTheta: 1e6,
		TieEmbeddings: true,
	}
	smol = &model.Config{
		ModelType: "llama", HiddenAct: "silu", VocabSize: 49152, HiddenSize: 576, IntermediateSize: 1536,
		NumLayers: 30, NumHeads: 9, NumKVHeads: 3, HeadDim: 64, MaxPositions: 8192, RMSNormEps: 1e-5, RopeTheta: 1e5,
		TieEmbeddings: true,
	}
)

func tinyConfig(t testing.TB) *model.Config {
	w, err := tiny.Load()
	require.NoError(t, err)
	return w.Config
}

// TestWeightBytes: the size that is planned is that of the tensors on the device, for each architecture. A matrix of
// int8, which the CPU device does not have, has a scale for each row.
func TestWeightBytes(t *testing.T) {
	for _, m := range fixtures.Models(t) {
		w, err := model.Open(m.Dir)
		require.NoError(t, err)
		c := w.Config
		for _, kind := range []dtypes.DType{dtypes.Float32, dtypes.BFloat16} {
			params, err := w.ParamsAs(graphtest.CPU(t), kind)
			require.NoError(t, err)
			bytes := int64(0)
			for _, x := range params.Tensors {
				bytes += x.Shape().ByteSize()
			}
			require.Equal(t, float64(bytes), WeightBytes(c, kind), m.Name)
		}
		want := WeightBytes(c, dtypes.BFloat16)
		for _, s := range c.Specs() {
			if len(s.Shape) == 2 {
				want += float64(s.Shape[0] * (4 - s.Shape[1]))
			}
		}
		require.Equal(t, want, WeightBytes(c, dtypes.Int8), m.Name)
	}
}
