package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

func find(t *testing.T, w *Weights, name string) Tensor {
	t.Helper()
	i := slices.IndexFunc(w.Tensors, func(x Tensor) bool { return x.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return w.Tensors[i]
}

// TestRandom_DependsOnSeedAndName: the numbers of a tensor do not change with what else is in the model.
func TestRandom_DependsOnSeedAndName(t *testing.T) {
	a, err := Random(testConfig(), 1)
	require.NoError(t, err)
	again, err := Random(testConfig(), 1)
	require.NoError(t, err)
	sameWeights(t, a, again)

	larger := testConfig()
	larger.NumLayers, larger.VocabSize, larger.TieEmbeddings = 3, 200, false
	b, err := Random(larger, 1)
	require.NoError(t, err)
	for _, name := range []string{"self_attn.q_proj", "self_attn.v_proj", "mlp.gate_proj", "input_layernorm"} {
		name = "model.layers.1." + name + ".weight"
		sameBits(t, find(t, a, name).Data, find(t, b, name).Data, "%s", name)
	}
	embed := find(t, a, "model.embed_tokens.weight").Data
	sameBits(t, embed, find(t, b, "model.embed_tokens.weight").Data[:len(embed)], "the rows that both have")
	for i, v := range find(t, a, "model.layers.1.mlp.down_proj.weight").Data {
		require.InEpsilon(t, float64(v)*math.Sqrt(2.0/3), find(t, b, "model.layers.1.mlp.down_proj.weight").Data[i], 1e-6,
			"its scale knows the number of layers")
	}

	other, err := Random(testConfig(), 2)
	require.NoError(t, err)
	for i, x := range a.Tensors {
		if len(x.Shape) == 1 {
			require.Equal(t, x, other.Tensors[i])
			continue
		}
		require.NotEqual(t, x.Data[0], other.Tensors[i].Data[0], "%s does not depend on the seed", x.Name)
		for _, y := range a.Tensors[:i] {
			require.NotEqual(t, x.Data[0], y.Data[0], "%s and %s start alike", x.Name, y.Name)
		}
	}
}

func TestRandom_Scale(t *testing.T) {
	c := testConfig()
	w, err := Random(c, seed)
	require.NoError(t, err)
	for _, x := range w.Tensors {
		var mean, square float64
		for _, v := range x.Data {
			mean += float64(v) / float64(len(x.Data))
			square += float64(v) * float64(v) / float64(len(x.Data))
		}
		std := 1 / math.Sqrt(float64(x.Shape[len(x.Shape)-1]))
		if strings.HasSuffix(x.Name, "o_proj.weight") || strings.HasSuffix(x.Name, "down_proj.weight") {
			std /= 2 // sqrt(2 * 2 layers)
		}
		if len(x.Shape) == 1 {
			require.Equal(t, slices.Repeat([]float32{1}, len(x.Data)), x.Data, x.Name)
			continue
		}
		n := math.Sqrt(float64(len(x.Data)))
		require.InDelta(t, 0, mean, 5*std/n, "%s, seed %d", x.Name, seed)
		require.InEpsilon(t, std, math.Sqrt(square), 5/n, "%s, seed %d", x.Name, seed)
	}
}

// TestRandom_Stable pins the numbers of a seed: a run must be reproducible by later versions.
func TestRandom_Stable(t *testing.T) {
	w, err := Random(testConfig(), 42)
	require.NoError(t, err)
	require.Equal(t, []float32{-0.12782258, 0.14494762, 0.058892112}, find(t, w, "model.embed_tokens.weight").Data[:3])
	require.Equal(t, []float32{-0.027875068, -0.008962211, 0.0023914552},
		find(t, w, "model.layers.1.self_attn.o_proj.weight").Data[:3])
}

func TestRandom_InvalidConfig(t *testing.T) {
	c := testConfig()
	c.HeadDim = 3
	_, err := Random(c, 1)
	require.ErrorContains(t, err, "head_dim 3 is odd")
}

// TestSpecs_Complete compares the list with the parameters of Qwen3: their number is known.
func TestSpecs_Complete(t *testing.T) {
	count := func(c *Config) (n int) {
		for _, s := range c.Specs() {
			n += s.size()
		}
		return n
	}
	c, err := ParseConfig(withKeys(t, nil)) // Qwen3-0.6B
	require.NoError(t, err)
	require.Equal(t, 596_049_920, count(c))
	c.TieEmbeddings = false
	require.Equal(t, 596_049_920+151_936*1024, count(c))
	require.Len(t, c.Specs(), 1+28*11+2)
}

// TestSpecs_PublishedModels compares the numbers of parameters with those of published checkpoints.
func TestSpecs_PublishedModels(t *testing.T) {
	shape := func(hidden, inner, layers, heads, kv, vocab int) map[string]any {
		return map[string]any{
			"architectures": "-", "head_dim": "-", "sliding_window": "-", "hidden_size": hidden, "intermediate_size": inner,
			"num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv, "vocab_size": vocab,
		}
	}
	for _, m := range []struct {
		name   string
		want   int
		shape  map[string]any
		others map[string]any
	}{
		{"Qwen2.5-0.5B", 494_032_768, shape(896, 4864, 24, 14, 2, 151936), map[string]any{"model_type": "qwen2"}},
		{"Llama-3.2-1B", 1_235_814_400, shape(2048, 8192, 16, 32, 8, 128256), map[string]any{"model_type": "llama"}},
		{"SmolLM2-135M", 134_515_008, shape(576, 1536, 30, 9, 3, 49152), map[string]any{"model_type": "llama"}},
		{"Mistral-7B", 7_241_732_096, shape(4096, 14336, 32, 32, 8, 32000), map[string]any{"model_type": "mistral", "tie_word_embeddings": false}},
		{"Gemma 3 270M", 268_098_176, shape(640, 2048, 18, 4, 1, 262144), map[string]any{"model_type": "gemma3_text", "head_dim": 256}},
		{"Gemma 3 1B", 999_885_952, shape(1152, 6912, 26, 4, 1, 262144), map[string]any{"model_type": "gemma3_text", "head_dim": 256}},
		{"Qwen3-30B-A3B", 30_532_122_624, shape(2048, 6144, 48, 32, 4, 151936), map[string]any{
			"model_type": "qwen3_moe", "head_dim": 128, "tie_word_embeddings": false,
			"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
		}},
	} {
		maps.Copy(m.shape, m.others)
		c, err := ParseConfig(withKeys(t, m.shape))
		require.NoError(t, err, m.name)
		n := 0
		for _, s := range c.Specs() {
			n += s.size()
		}
		require.Equal(t, m.want, n, m.name)
	}
}

func TestLinears_AreTheMatricesOfTheBlocks(t *testing.T) {
	c := testConfig()
	c.TieEmbeddings = false
	var got []string
	for _, l := range c.Linears() {
		got = append(got, fmt.Sprintf("%s %d %d", l.Name, l.In, l.Out))
	}
	var want []string
	for l := range 2 {
		p := fmt.Sprintf("model.layers.%d.", l)
		want = append(want, p+"self_attn.q_proj 64 128", p+"self_attn.k_proj 64 64", p+"self_attn.v_proj 64 64",
			p+"self_attn.o_proj 128 64",
			p+"mlp.gate_proj 64 144", p+"mlp.up_proj 64 144", p+"mlp.down_proj 144 64")
	}
	require.Equal(t, want, got)
}

func TestSetParam_Errors(t *testing.T) {
	w := testWeights(t, smallConfig(true))
	before := slices.Clone(w.Tensors[0].Data)
	require.ErrorContains(t, w.SetParam("lm_head.weight", make([]float32, 20)), `no tensor "lm_head.weight"`)
	require.ErrorContains(t, w.SetParam("model.embed_tokens.weight", make([]float32, 19)), "19 values, want 20")
	require.Equal(t, before, w.Tensors[0].Data)
}

// TestSetParam_Copies: the weights keep nothing of the caller's.
func TestSetParam_Copies(t *testing.T) {
	w := testWeights(t, smallConfig(true))
	for _, name := range []string{"model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight"} {
		data := make([]float32, len(find(t, w, name).Data))
		require.NoError(t, w.SetParam(name, data))
		data[0] = 5
		require.Zero(t, find(t, w, name).Data[0])
	}
}

// TestParams_OneCopy: each tensor is given once, in the shape and with the values of the checkpoint.
func TestParams_OneCopy(t *testing.T) {
	for _, tied := range []bool{true, false} {
		w := testWeights(t, smallConfig(tied))
		p, err := w.Params(graphtest.Device(t))
		require.NoError(t, err)
		require.Len(t, p.Names, len(w.Tensors))
		for i, x := range w.Tensors {
			require.Equal(t, x.Name, p.Names[i])
			require.Equal(t, x.Shape, p.Tensors[i].Shape().Dimensions)
			buffer, err := p.Tensors[i].Buffer(graphtest.Device(t), 0)
			require.NoError(t, err)
			got := make([]float32, len(x.Data))
			require.NoError(t, buffer.ToFlatData(got)) // it may be packed
			require.Equal(t, x.Data, got)
		}
	}
}
