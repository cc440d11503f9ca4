package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

// realConfig is the form of a published config.json: what this package reads, and what it has no use for.
func realConfig() map[string]any {
	return map[string]any{
		"architectures": []string{"Qwen3ForCausalLM"}, "attention_bias": false, "attention_dropout": 0.0,
		"bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024,
		"initializer_range": 0.02, "intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28,
		"model_type": "qwen3", "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8,
		"rms_norm_eps": 1e-6, "rope_scaling": nil, "rope_theta": 1000000, "sliding_window": nil, "tie_word_embeddings": true,
		"torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true, "use_sliding_window": false,
		"vocab_size": 151936, "some_later_key": map[string]any{"x": []int{1}},
	}
}

// withKeys returns the JSON of realConfig after some changes. A nil value stays as null; "-" removes the key.
func withKeys(t *testing.T, changes map[string]any) []byte {
	t.Helper()
	c := realConfig()
	maps.Copy(c, changes)
	for key, value := range c {
		if value == "-" {
			delete(c, key)
		}
	}
	data, err := json.Marshal(c)
	require.NoError(t, err)
	return data
}

func TestParseConfig_Real(t *testing.T) {
	c, err := ParseConfig(withKeys(t, nil))
	require.NoError(t, err)
	require.Equal(t, &Config{
		Architectures: []string{"Qwen3ForCausalLM"}, ModelType: "qwen3", VocabSize: 151936, HiddenSize: 1024, IntermediateSize: 3072,
		NumLayers: 28, NumHeads: 16, NumKVHeads: 8, HeadDim: 128, MaxPositions: 40960, RMSNormEps: 1e-6, RopeTheta: 1e6,
		TieEmbeddings: true, HiddenAct: "silu", TorchDType: "bfloat16", EOSTokenID: json.RawMessage("151645"),
	}, c)
}

func TestParseConfig_Defaults(t *testing.T) {
	c, err := ParseConfig(withKeys(t, map[string]any{
		"head_dim": "-", "num_key_value_heads": "-", "tie_word_embeddings": "-", "bos_token_id": nil, "eos_token_id": "-",
		"rope_scaling": "-", "use_sliding_window": "-", "quantization_config": nil,
	}))
	require.NoError(t, err)
	require.Equal(t, 64, c.HeadDim, "hidden_size / num_attention_heads")
	require.Equal(t, 16, c.NumKVHeads, "as many as query heads")
	require.False(t, c.TieEmbeddings)
	require.Nil(t, c.EOSTokenID)
}

// TestParseConfig_Refuses: what changes the computation and is not built here is refused by its name, never ignored.
func TestParseConfig_Refuses(t *testing.T) {
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{"model_type", "llama", `model_type "llama" is not supported`},
		{"model_type", "-", `model_type "" is not supported`},
		{"hidden_act", "gelu", `hidden_act "gelu" is not supported`},
		{"hidden_act", "-", `hidden_act "" is not supported`},
		{"attention_bias", true, "attention_bias is not supported"},
		{"rope_scaling", map[string]any{"rope_type": "yarn", "factor": 4.0}, "rope_scaling is not supported"},
		{"use_sliding_window", true, "use_sliding_window is not supported"},
		{"quantization_config", map[string]any{"bits": 4}, "quantization_config is not supported"},
		{"vocab_size", 0, "vocab_size is 0"},
		{"vocab_size", 1 << 25, "vocab_size is 33554432"},
		{"hidden_size", -1, "hidden_size is -1"},
		{"intermediate_size", "-", "intermediate_size is 0"},
		{"num_hidden_layers", 0, "num_hidden_layers is 0"},
		{"num_attention_heads", 0, "num_attention_heads is 0"},
		{"num_key_value_heads", -2, "num_key_value_heads is -2"},
		{"num_key_value_heads", 3, "num_attention_heads 16 is not a multiple of num_key_value_heads 3"},
		{"head_dim", -128, "head_dim is -128"},
		{"head_dim", 63, "head_dim 63 is odd"},
		{"max_position_embeddings", 0, "max_position_embeddings is 0"},
		{"rms_norm_eps", 0, "rms_norm_eps is 0"},
		{"rms_norm_eps", -1e-6, "rms_norm_eps is -1e-06"},
		{"rope_theta", "-", "rope_theta is 0"},
		{"hidden_size", "many", "hidden_size"},
		{"hidden_size", 1.5, "hidden_size"},
	} {
		t.Run(fmt.Sprintf("%s %v", c.key, c.value), func(t *testing.T) {
			_, err := ParseConfig(withKeys(t, map[string]any{c.key: c.value}))
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "model: ")
		})
	}
}

func TestParseConfig_ListsEveryProblem(t *testing.T) {
	_, err := ParseConfig(withKeys(t, map[string]any{"vocab_size": 0, "rope_theta": -1, "head_dim": 7, "hidden_act": "relu"}))
	for _, want := range []string{"vocab_size is 0", "rope_theta is -1", "head_dim 7 is odd", `hidden_act "relu"`} {
		require.ErrorContains(t, err, want)
	}
}

func TestParseConfig_NotJSON(t *testing.T) {
	for _, text := range []string{"", "{", "null", "[]", `"qwen3"`, "{}"} {
		_, err := ParseConfig([]byte(text))
		require.ErrorContains(t, err, "model: ", text)
	}
}

func TestConfig_SaveLoad(t *testing.T) {
	for _, change := range []func(c *Config){
		func(*Config) {},
		func(c *Config) { c.TieEmbeddings, c.EOSTokenID, c.TorchDType = false, json.RawMessage("3"), "float32" },
		func(c *Config) { c.RMSNormEps, c.RopeTheta = 1.0/3*1e-5, 1e6/7 },
	} {
		dir, want := t.TempDir(), testConfig()
		change(want)
		require.NoError(t, want.Save(dir))
		got, err := LoadConfig(dir)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := LoadConfig(t.TempDir())
	require.ErrorContains(t, err, ConfigFile)
}

// FuzzParseConfig: any input is an error or a valid configuration that survives a round trip. It is never a panic.
func FuzzParseConfig(f *testing.F) {
	real, err := json.Marshal(realConfig())
	require.NoError(f, err)
	f.Add(real)
	f.Add([]byte(`{"model_type":"qwen3","num_attention_heads":1e9,"head_dim":null}`))
	f.Add([]byte(`{"MODEL_TYPE":"qwen3","rope_scaling":false,"rope_theta":1e999}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig(data)
		if err != nil {
			require.Nil(t, c)
			return
		}
		require.NoError(t, c.Validate())
		again, err := json.Marshal(c)
		require.NoError(t, err)
		back, err := ParseConfig(again)
		require.NoError(t, err)
		require.Equal(t, c, back)
	})
}
