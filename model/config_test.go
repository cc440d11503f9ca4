package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/dev/fixtures"
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
	require.Equal(t, `{"x":[1]}`, string(c.extra["some_later_key"]))
	c.extra = nil
	require.Equal(t, &Config{
		Architectures: []string{"Qwen3ForCausalLM"}, ModelType: "qwen3", VocabSize: 151936, HiddenSize: 1024,
		IntermediateSize: 3072,
		NumLayers:        28, NumHeads: 16, NumKVHeads: 8, HeadDim: 128, MaxPositions: 40960, RMSNormEps: 1e-6,
		RopeTheta:     1e6,
		TieEmbeddings: true, HiddenAct: "silu", TorchDType: "bfloat16", EOSTokenID: json.RawMessage("151645"),
	}, c)
}

func TestParseConfig_Defaults(t *testing.T) {
	c, err := ParseConfig(withKeys(t, map[string]any{
		"head_dim": "-", "num_key_value_heads": "-", "tie_word_embeddings": "-", "bos_token_id": nil, "eos_token_id": "-",
		"rope_scaling": "-", "rope_theta": "-", "use_sliding_window": "-", "quantization_config": nil, "hidden_act": "-",
		"rms_norm_eps": "-",
		"model_type":   "llama", "architectures": "-",
	}))
	require.NoError(t, err)
	require.Equal(t, "silu", c.HiddenAct)
	require.Equal(t, 1e-6, c.RMSNormEps)
	require.Equal(t, 64, c.HeadDim, "hidden_size / num_attention_heads")
	require.Equal(t, 16, c.NumKVHeads, "as many as query heads")
	require.Equal(t, 10000.0, c.RopeTheta)
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
		{"model_type", "robot", `model_type "robot" is not supported: this version builds exaone4, gemma3_text, granite, granitemoehybrid, llama, mistral, olmo2, phi3, qwen2, qwen3, qwen3_moe, seed_oss, smollm3, gemma3, mistral3, qwen2_5_vl, qwen3_vl`},
		{"model_type", "llama", `architectures ["Qwen3ForCausalLM"] is not supported with model_type "llama"`},
		{"architectures", []string{"Qwen3ForSequenceClassification"}, `architectures ["Qwen3ForSequenceClassification"] is not supported`},
		{"model_type", "-", `model_type "" is not supported`},
		{"hidden_act", "gelu", `hidden_act "gelu" is not supported`},
		{"hidden_act", nil, `hidden_act "" is not supported`},
		{"rope_scaling", map[string]any{"rope_type": "ntk", "factor": 4.0}, `rope_scaling: rope_type "ntk" is not supported: this version has default, linear, dynamic, yarn, longrope and llama3`},
		{"rope_scaling", map[string]any{"rope_type": "linear", "factor": 4.0, "mscale": 2}, `rope_scaling: mscale is not supported with rope_type "linear"`},
		{"rope_scaling", map[string]any{"rope_type": "linear"}, "rope_scaling: factor is 0"},
		{"rope_scaling", map[string]any{"rope_type": "llama3", "factor": 8}, "low_freq_factor is 0"},
		{"rope_scaling", 7, "rope_scaling: "},
		{"rope_parameters", map[string]any{"rope_type": "su"}, `rope_parameters: rope_type "su" is not supported`},
		{"rope_parameters", map[string]any{"rope_theta": 5}, "rope_parameters: rope_theta is 5, and 1e+06 outside: keep one"},
		{"rope_parameters", map[string]any{"full_attention": map[string]any{}}, "full_attention is not supported"},
		{"rope_parameters", map[string]any{"rope_theta": 0}, "rope_parameters: rope_theta is 0, want a positive number"},
		{"rope_scaling", map[string]any{"type": "linear", "rope_type": "default", "factor": 2}, `type is "linear" and rope_type "default": keep one`},
		{"rope_scaling", map[string]any{"rope_theta": 5}, "rope_scaling: rope_theta is 5, which transformers 4 does not read"},
		{"partial_rotary_factor", 0.5, "partial_rotary_factor is 0.5, which qwen3 does not build"},
		{"use_bidirectional_attention", true, "use_bidirectional_attention is not supported"},
		{"layer_types", []string{"full_attention"}, "layer_types has 1 entries, num_hidden_layers is 28"},
		{"layer_types", slices.Repeat([]string{"chunked_attention"}, 28), `layer_types: "chunked_attention" is not supported`},
		{"layer_types", slices.Repeat([]string{"sliding_attention"}, 28), "there is no sliding_window"},
		{"sliding_window", -1, "sliding_window is -1"},
		{"quantization_config", map[string]any{"bits": 4}, "quantized, which is not supported (quantization_config): use a GGUF file"},
		{"vocab_size", 0, "vocab_size is 0"},
		{"vocab_size", 1 << 25, "vocab_size is 33554432"},
		{"hidden_size", -1, "hidden_size is -1"},
		{"intermediate_size", "-", "intermediate_size is 0"},
		{"num_hidden_layers", 0, "num_hidden_layers is 0"},
		{"num_hidden_layers", 1 << 20, "num_hidden_layers is 1048576, want 1 to 1024"},
		{"num_attention_heads", 0, "num_attention_heads is 0"},
		{"num_key_value_heads", -2, "num_key_value_heads is -2"},
		{"num_key_value_heads", 3, "num_attention_heads 16 is not a multiple of num_key_value_heads 3"},
		{"head_dim", -128, "head_dim is -128"},
		{"head_dim", 63, "head_dim 63 is odd"},
		{"max_position_embeddings", 0, "max_position_embeddings is 0"},
		{"rms_norm_eps", 0, "rms_norm_eps is 0"},
		{"rms_norm_eps", -1e-6, "rms_norm_eps is -1e-06"},
		{"rope_theta", -1, "rope_theta is -1"},
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

// TestParseConfig_RefusesConflictingRope: a file whose rotary positions transformers 5 takes from other keys than 4, or
// leaves out, is refused. Each of these was read, as positions that transformers 5 does not compute.
func TestParseConfig_RefusesConflictingRope(t *testing.T) {
	type object = map[string]any
	linear, plain := object{"rope_type": "linear", "factor": 8.0}, object{"rope_type": "default"}
	llama3 := object{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
		"original_max_position_embeddings": 8192}
	gemma := object{"model_type": "gemma3_text", "architectures": "-", "tie_word_embeddings": "-", "sliding_window": 512,
		"rope_theta": "-"}
	for name, c := range map[string]struct {
		base, changes object
		want          string
	}{
		"flat parameters of Gemma": {gemma, object{"rope_parameters": object{"rope_type": "default", "rope_theta": 5e5}},
			"rope_theta is not read for gemma3_text, which has an object for each kind of layer: move it into full_attention or sliding_attention"},
		"theta beside the kinds": {gemma, object{"rope_parameters": object{"full_attention": linear, "rope_theta": 5e5}}, "rope_theta is not read"},
		"Gemma, default beside linear": {gemma, object{"rope_scaling": plain, "rope_parameters": object{"full_attention": linear}},
			`rope_scaling, which transformers prefers, is rope_type "default": keep one`},
		"Gemma, linear beside default":     {gemma, object{"rope_scaling": linear, "rope_parameters": object{"full_attention": plain}}, "keep one"},
		"Gemma, nowhere to put it":         {gemma, object{"rope_scaling": linear, "rope_parameters": object{"sliding_attention": plain}}, "no full_attention for rope_scaling"},
		"default beside linear":            {nil, object{"rope_scaling": plain, "rope_parameters": linear}, "keep one"},
		"linear beside default":            {nil, object{"rope_scaling": linear, "rope_parameters": plain}, "keep one"},
		"theta that rope_scaling replaces": {nil, object{"rope_theta": "-", "rope_scaling": plain, "rope_parameters": object{"rope_theta": 5e5}}, "does not read its rope_theta 500000 beside rope_scaling"},
		"original positions outside":       {nil, object{"rope_scaling": llama3, "original_max_position_embeddings": 4096}, "original_max_position_embeddings is 4096, and 8192 among"},
		"two numbers of experts":           {nil, object{"num_experts": 4, "num_local_experts": 6}, "num_local_experts is 6 and num_experts 4: keep one"},
	} {
		changes := maps.Clone(c.base)
		if changes == nil {
			changes = object{}
		}
		maps.Copy(changes, c.changes)
		_, err := ParseConfig(withKeys(t, changes))
		require.ErrorContains(t, err, c.want, name)
	}
	for name, changes := range map[string]object{
		"the same twice":       {"rope_scaling": linear, "rope_parameters": linear},
		"nothing in the old":   {"rope_scaling": object{}, "rope_parameters": linear},
		"default twice":        {"rope_scaling": plain, "rope_parameters": object{"rope_theta": 1e6}},
		"type said twice":      {"rope_scaling": object{"type": "linear", "rope_type": "linear", "factor": 8.0}},
		"positions said twice": {"rope_scaling": llama3, "original_max_position_embeddings": 8192},
	} {
		_, err := ParseConfig(withKeys(t, changes))
		require.NoError(t, err, name)
	}
}

// TestParseConfig_OtherArchitectures: they are refused by name, also when keys have types that no architecture here
// knows. Gemma 3n has a list of sizes.
func TestParseConfig_OtherArchitectures(t *testing.T) {
	for _, name := range []string{"gemma3n_text", "gpt_oss", "phimoe"} {
		_, err := ParseConfig(withKeys(t,
			map[string]any{"model_type": name, "architectures": "-", "intermediate_size": []int{8, 8}, "rope_theta": "x"}))
		require.ErrorContains(t, err, fmt.Sprintf("model_type %q is not supported: this version builds exaone4", name))
	}
	_, err := ParseConfig(withKeys(t, map[string]any{"model_type": 3}))
	require.ErrorContains(t, err, "model_type: ")
	_, err = ParseConfig(withKeys(t, map[string]any{"architectures": "Qwen3ForCausalLM"}))
	require.ErrorContains(t, err, "architectures: ")
}

func TestParseConfig_ListsEveryProblem(t *testing.T) {
	_, err := ParseConfig(withKeys(t,
		map[string]any{"vocab_size": 0, "rope_theta": -1, "head_dim": 7, "hidden_act": "relu"}))
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
	dir := t.TempDir()
	for _, broken := range []string{"", "{}", `{"model_type": "robot"}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, ConfigFile), []byte(broken), 0o600))
		_, err = LoadConfig(dir)
		require.ErrorContains(t, err, "(in "+dir+")")
	}
}

// TestParseConfig_Version5: the spelling of transformers 5 is that of 4.
func TestParseConfig_Version5(t *testing.T) {
	llama3 := map[string]any{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
		"original_max_position_embeddings": 8192}
	llama := map[string]any{"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}}
	gemma := map[string]any{"model_type": "gemma3_text", "architectures": []string{"Gemma3ForCausalLM"},
		"tie_word_embeddings": "-", "sliding_window": 512}
	moe := map[string]any{
		"model_type": "qwen3_moe", "architectures": []string{"Qwen3MoeForCausalLM"}, "num_experts_per_tok": 2,
		"moe_intermediate_size": 8, "mlp_only_layers": []int{},
	}
	with := func(base map[string]any, key string, value any) map[string]any {
		base = maps.Clone(base)
		base[key] = value
		return base
	}
	for name, spelled := range map[string][2]map[string]any{
		"dtype":   {{"torch_dtype": "bfloat16"}, {"torch_dtype": "-", "dtype": "bfloat16"}},
		"default": {{"rope_theta": 5e5}, {"rope_theta": "-", "rope_scaling": "-", "rope_parameters": map[string]any{"rope_theta": 5e5, "rope_type": "default"}}},
		"both":    {{}, {"rope_parameters": map[string]any{"rope_theta": 1e6, "rope_type": "default"}}},
		"experts": {with(moe, "num_experts", 6), with(moe, "num_local_experts", 6)},
		"llama3": {
			with(with(llama, "rope_theta", 5e5), "rope_scaling", llama3),
			with(with(llama, "rope_theta", "-"), "rope_parameters", with(llama3, "rope_theta", 5e5)),
		},
		"gemma": {
			with(with(with(gemma, "rope_local_base_freq", 9e3), "rope_scaling",
				map[string]any{"rope_type": "linear", "factor": 8}), "layer_types", kinds(5, 28)),
			with(with(with(gemma, "rope_theta", "-"), "sliding_window_pattern", 5), "rope_parameters", map[string]any{
				"full_attention":    map[string]any{"rope_type": "linear", "factor": 8, "rope_theta": 1e6},
				"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": 9e3},
			}),
		},
	} {
		var read [2]*Config
		for i, changes := range spelled {
			var err error
			read[i], err = ParseConfig(withKeys(t, changes))
			require.NoError(t, err, name)
			delete(read[i].extra, "sliding_window_pattern")
		}
		require.Equal(t, read[0], read[1], name)
	}
}

// kinds returns the types of n layers, of which each pattern-th has no window.
func kinds(pattern, n int) (list []string) {
	for i := range n {
		list = append(list, map[bool]string{true: layerFull, false: layerSliding}[(i+1)%pattern == 0])
	}
	return list
}

// TestParseConfig_DefaultsOfArchitectures: what a file leaves out is what transformers takes it for.
func TestParseConfig_DefaultsOfArchitectures(t *testing.T) {
	parse := func(changes map[string]any) *Config {
		c, err := ParseConfig(withKeys(t, changes))
		require.NoError(t, err)
		return c
	}
	gemma := parse(map[string]any{
		"model_type": "gemma3_text", "architectures": "-", "rope_theta": "-", "tie_word_embeddings": "-",
		"sliding_window": "-", "hidden_act": "-", "head_dim": "-",
	})
	require.Empty(t, gemma.HiddenAct)
	require.Equal(t, 256, gemma.HeadDim)
	require.Equal(t, 128, parse(map[string]any{"head_dim": "-"}).HeadDim, "Qwen3's")
	require.Equal(t, kinds(6, 28), gemma.LayerTypes)
	require.Equal(t, 4096, gemma.SlidingWindow)
	require.Equal(t, []any{1e6, 1e4, 256.0, "gelu_pytorch_tanh", true},
		[]any{gemma.RopeTheta, gemma.RopeLocalTheta, gemma.QueryScalar, gemma.HiddenActivation, gemma.TieEmbeddings})

	mistral := map[string]any{"model_type": "mistral", "architectures": "-", "sliding_window": "-"}
	require.Equal(t, 4096, parse(mistral).SlidingWindow)
	mistral["sliding_window"] = nil
	require.Zero(t, parse(mistral).SlidingWindow, "null is none")

	qwen := map[string]any{"model_type": "qwen2", "architectures": "-", "use_sliding_window": true, "sliding_window": 64,
		"max_window_layers": 26}
	require.Equal(t, append(slices.Repeat([]string{layerFull}, 26), layerSliding, layerSliding), parse(qwen).LayerTypes)
	qwen["sliding_window"] = "-"
	require.Equal(t, 4096, parse(qwen).design().layers[27].window)
	qwen["sliding_window"] = nil
	require.Zero(t, parse(qwen).design().layers[27].window, "null is none")
	qwen["sliding_window"] = 0
	_, err := ParseConfig(withKeys(t, qwen))
	require.ErrorContains(t, err, "sliding_window is 0: want null")
	qwen["sliding_window"] = nil
	qwen["model_type"] = "qwen3_moe"
	maps.Copy(qwen, map[string]any{"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8})
	none := parse(qwen)
	require.Zero(t, none.design().layers[27].window)
	saved, err := json.Marshal(none)
	require.NoError(t, err)
	again, err := ParseConfig(saved)
	require.NoError(t, err)
	require.Equal(t, none, again)
	qwen["sliding_window"] = "-"
	require.Equal(t, 4096, parse(qwen).design().layers[27].window)
	qwen["model_type"], qwen["sliding_window"] = "qwen2", 64
	delete(qwen, "num_experts")
	delete(qwen, "moe_intermediate_size")
	qwen["use_sliding_window"] = false
	for _, l := range parse(qwen).design().layers {
		require.Zero(t, l.window, "it is switched off")
	}
}

// TestParseConfig_KindsOfLayers: an architecture whose layers are alike does not ignore that a file wants them to
// differ.
func TestParseConfig_KindsOfLayers(t *testing.T) {
	for _, name := range []string{"mistral", "llama", "granite"} {
		changes := map[string]any{"model_type": name, "architectures": "-", "sliding_window": 64, "layer_types": kinds(2, 28)}
		_, err := ParseConfig(withKeys(t, changes))
		require.ErrorContains(t, err, "which "+name+" does not build")
		changes["layer_types"] = kinds(map[string]int{"mistral": 99}[name]+1, 28) // all alike
		_, err = ParseConfig(withKeys(t, changes))
		require.NoError(t, err)
	}
}

// TestConfig_KeepsOtherKeys: what is not read here is written back, and null stays null.
func TestConfig_KeepsOtherKeys(t *testing.T) {
	c, err := ParseConfig(withKeys(t, map[string]any{"model_type": "mistral", "architectures": "-", "pad_token_id": nil}))
	require.NoError(t, err)
	data, err := json.Marshal(c)
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(data, &got))
	for key, want := range map[string]any{"some_later_key": map[string]any{"x": []any{1.0}},
		"transformers_version": "4.51.0", "sliding_window": nil, "pad_token_id": nil} {
		require.Contains(t, got, key)
		require.Equal(t, want, got[key])
	}
}

// TestConfig_WritesDecimals: transformers 5 refuses some numbers without a decimal point, and 4 warns of others.
func TestConfig_WritesDecimals(t *testing.T) {
	c := testConfig()
	c.FinalSoftCap, c.LogitsScaling, c.ResidualMultiplier = 30, 8, 0.22
	c.RopeScaling = &RopeScaling{Type: ropeLlama3, Factor: 8, LowFactor: 1, HighFactor: 4, OriginalPositions: 32}
	data, err := json.Marshal(c)
	require.NoError(t, err)
	for _, want := range []string{
		`"final_logit_softcapping":30.0`, `"logits_scaling":8.0`, `"residual_multiplier":0.22`, `"factor":8.0`,
		`"low_freq_factor":1.0`,
		`"original_max_position_embeddings":32,`,
	} {
		require.Contains(t, string(data), want)
	}
}

// FuzzParseConfig: any input is an error or a valid configuration, whose tensors can be listed and which survives a
// round trip. It is never a panic.
func FuzzParseConfig(f *testing.F) {
	real, err := json.Marshal(realConfig())
	require.NoError(f, err)
	f.Add(real)
	for _, m := range fixtures.Models(f) {
		data, err := os.ReadFile(filepath.Join(m.Dir, ConfigFile))
		require.NoError(f, err)
		f.Add(data)
	}
	var ropes ropeCases
	readRopeFile(f, "cases.json", &ropes)
	for _, c := range ropes.Cases {
		data, err := json.Marshal(c.Config)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig(data)
		if err != nil {
			require.Nil(t, c)
			return
		}
		require.NoError(t, c.Validate())
		p, shapes := c.Outline()
		require.Len(t, shapes, len(p.Names))
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(p.Names))), len(p.Names), "names differ")
		require.NotEmpty(t, c.Linears())
		again, err := json.Marshal(c)
		require.NoError(t, err)
		back, err := ParseConfig(again)
		require.NoError(t, err)
		require.Equal(t, c, back)
	})
}
