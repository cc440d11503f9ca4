package model

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// families are changes of realConfig for each architecture, with the keys that it needs.
func families() map[string]map[string]any {
	list := map[string]map[string]any{}
	for _, a := range architectures() {
		if a.class != "" {
			list[a.modelType] = map[string]any{"model_type": a.modelType, "architectures": []string{a.class}}
		}
	}
	maps.Copy(list["qwen3_moe"],
		map[string]any{"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8})
	maps.Copy(list["granitemoehybrid"], map[string]any{"layer_types": slices.Repeat([]string{layerFull}, 28),
		"num_local_experts": 0, "shared_intermediate_size": 8})
	maps.Copy(list["gemma3_text"], map[string]any{"sliding_window": 512, "use_sliding_window": "-"})
	return list
}

// with returns a copy with a key set.
func with(changes map[string]any, key string, value any) map[string]any {
	changes = maps.Clone(changes)
	changes[key] = value
	return changes
}

// TestParseConfig_ForwardKeys: for each family each key that changes the forward pass is read, or refused by its name.
// They were ignored: the model computed something else without a word.
func TestParseConfig_ForwardKeys(t *testing.T) {
	keys := slices.AppendSeq([]string{"mamba_d_state", "ssm_state_size", "lightning_nope", "use_attention_sinks",
		"add_swa_attention_sink_bias", "num_sink_tokens"}, maps.Keys(forwardKeys))
	for name, family := range families() {
		if name != "gemma3_text" {
			family["use_sliding_window"] = "-"
		}
		_, err := ParseConfig(withKeys(t, family))
		require.NoError(t, err, name)
		a, err := (&Config{ModelType: name}).architecture()
		require.NoError(t, err)
		for _, key := range keys {
			if slices.Contains(a.reads, key) || key == "sliding_window" && family["layer_types"] != nil { // which say it
				continue
			}
			for _, value := range []any{7, 0.5, true, "other", []int{3}, map[string]any{"x": 1}} {
				_, err := ParseConfig(withKeys(t, with(family, key, value)))
				if slices.Contains(forwardKeys[key], "true") && value == true {
					require.NoError(t, err, "%s: %s is %v", name, key, value)
					continue
				}
				require.Error(t, err, "%s: %s is %v", name, key, value)
				require.ErrorContains(t, err, key, name)
			}
			for _, value := range append([]string{"null"}, forwardKeys[key]...) {
				_, err := ParseConfig(withKeys(t, with(family, key, json.RawMessage(value))))
				require.NoError(t, err, "%s: %s is %s", name, key, value)
			}
		}
	}
}

// TestParseConfig_ReadKeys: a key that a family reads is a field, or says what is so anyway.
func TestParseConfig_ReadKeys(t *testing.T) {
	anyway := append([]string{"use_sliding_window", "sliding_window_pattern", "qkv_bias", "use_qkv_bias", "add_qkv_bias",
		"attention_qkv_bias", "no_rope_layer_interval", "layers_block_type"}, headNormKeys...)
	for _, a := range architectures() {
		for _, key := range a.reads {
			require.True(t, isForwardKey(key), "%s: %s", a.modelType, key)
			require.True(t, slices.Contains(configKeys, key) || slices.Contains(anyway, key) ||
				a.modelType == "granitemoehybrid" && strings.HasPrefix(key, "mamba_"), "%s: %s", a.modelType, key)
		}
	}
}

// TestParseConfig_LayerTypes: in each family a kind of layer that is not built is refused by its name.
func TestParseConfig_LayerTypes(t *testing.T) {
	for name, family := range families() {
		for _, kind := range []string{"chunked_attention", "linear_attention", "mamba", "", "full"} {
			types := append(slices.Repeat([]string{layerFull}, 27), kind)
			_, err := ParseConfig(withKeys(t, with(family, "layer_types", types)))
			require.ErrorContains(t, err, `layer_types: "`+kind+`" is not supported: this version has full_attention`, name)
		}
		_, err := ParseConfig(withKeys(t, with(family, "layer_types", []string{layerFull})))
		require.ErrorContains(t, err, "layer_types has 1 entries, num_hidden_layers is 28", name)
		_, err = ParseConfig(withKeys(t, with(family, "layer_types", slices.Repeat([]string{layerFull}, 28))))
		require.NoError(t, err, name)
	}
	_, err := ParseConfig(withKeys(t, map[string]any{"layer_types": slices.Repeat([]string{"linear_attention"}, 28)}))
	require.Less(t, strings.Count(err.Error(), "linear_attention"), 2, "once is enough")
}

// TestParseConfig_Published: configurations as they are published, with keys that they have and that change nothing.
func TestParseConfig_Published(t *testing.T) {
	for name, changes := range map[string]map[string]any{
		"SmolLM2": {"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}, "is_llama_config": true,
			"rope_interleaved": false, "pretraining_tp": 1, "mlp_bias": false, "attention_bias": false, "rope_theta": 100000},
		"Qwen2.5-Math": {"model_type": "qwen2", "architectures": []string{"Qwen2ForCausalLM"}, "use_mrope": false,
			"sliding_window": 4096, "max_window_layers": 21, "use_sliding_window": false},
		"Qwen3-Coder-30B": {"model_type": "qwen3_moe", "architectures": []string{"Qwen3MoeForCausalLM"}, "qkv_bias": false,
			"use_qk_norm": true, "shared_expert_intermediate_size": 0, "num_experts": 4, "num_experts_per_tok": 2,
			"moe_intermediate_size": 8, "router_aux_loss_coef": 0.0, "mlp_only_layers": []int{}, "decoder_sparse_step": 1},
		"Gemma 3 1B": {"model_type": "gemma3_text", "architectures": []string{"Gemma3ForCausalLM"}, "sliding_window": 512,
			"attn_logit_softcapping": nil, "final_logit_softcapping": nil, "query_pre_attn_scalar": 256,
			"sliding_window_pattern": 6, "cache_implementation": "hybrid", "rope_local_base_freq": 10000,
			"use_bidirectional_attention": false, "_sliding_window_pattern": 6, "use_sliding_window": "-"},
		"Granite 3.3": {"model_type": "granite", "architectures": []string{"GraniteForCausalLM"}, "mlp_bias": false,
			"attention_multiplier": 0.0078125, "embedding_multiplier": 12.0, "logits_scaling": 16.0, "residual_multiplier": 0.22},
		"Mistral 7B v0.1": {"model_type": "mistral", "architectures": []string{"MistralForCausalLM"}, "sliding_window": 4096,
			"use_sliding_window": "-"},
	} {
		_, err := ParseConfig(withKeys(t, changes))
		require.NoError(t, err, name)
	}
}

// TestValidate_ForwardKeys: a configuration that was made in a program is checked as a file is.
func TestValidate_ForwardKeys(t *testing.T) {
	c := testConfig()
	require.NoError(t, c.Validate())
	c.FinalSoftCap, c.ResidualMultiplier = 30, 0.5
	require.ErrorContains(t, c.Validate(), "final_logit_softcapping is 30.0, which qwen3 does not build")
	require.ErrorContains(t, c.Validate(), "residual_multiplier is 0.5, which qwen3 does not build")
}

// TestParseConfig_SaysWhatItIs: what cannot be built is said to be what it is.
func TestParseConfig_SaysWhatItIs(t *testing.T) {
	type object = map[string]any
	text := func(kind string) object { return object{"model_type": kind, "hidden_size": 8} }
	for want, changes := range map[string]object{
		`a model that reads images too, around a text model of model_type "gemma3_text": use a checkpoint of that text model alone`: {
			"model_type": "paligemma", "text_config": text("gemma3_text"), "vision_config": object{"x": 1}},
		`a model that reads images too, around a text model of model_type "qwen3_vl_moe_text", which is not supported either`: {
			"model_type": "qwen3_vl_moe", "text_config": text("qwen3_vl_moe_text"), "vision_config": object{"x": 1}},
		`a text model of model_type "kimi" with latent attention and experts, which`: {
			"model_type": "kimi_vl", "vision_config": object{}, "text_config": object{"model_type": "kimi", "kv_lora_rank": 8,
				"n_routed_experts": 4}},
		`reads images and sound too, around a text model of model_type "qwen3"`: {"model_type": "omni",
			"thinker_config": object{"text_config": text("qwen3"), "audio_config": object{"x": 1}, "vision_config": object{"x": 1}}},
		"a model that reads images too: ":          {"model_type": "qwen2_vl", "vision_config": object{"x": 1}},
		"around a text model whose model_type":     {"model_type": "llava", "text_config": object{"hidden_size": 8}},
		"an encoder with a decoder":                {"model_type": "t5", "is_encoder_decoder": true},
		"a classifier or a reward model":           {"architectures": []string{"Qwen3ForSequenceClassification"}},
		"without an output head, as for embedding": {"architectures": []string{"Qwen3Model"}},
		"an adapter, not a model":                  {"model_type": "-", "peft_type": "LORA", "architectures": "-"},
		"a text model with Mamba layers":           {"model_type": "bamba", "mamba_d_state": 128},
		"a text model with experts":                {"model_type": "mixtral", "num_local_experts": 8},
		"a text model with linear attention":       {"model_type": "qwen3_next", "linear_num_key_heads": 16},
	} {
		_, err := ParseConfig(withKeys(t, changes))
		for part := range strings.SplitSeq(want, " and ") {
			require.ErrorContains(t, err, part)
		}
		require.ErrorContains(t, err, "the checkpoint is a")
		require.ErrorContains(t, err, "is not supported")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, ConfigFile), withKeys(t, object{"model_type": "phimoe"}), 0o600))
	_, err := LoadConfig(dir)
	require.NotContains(t, err.Error(), "the checkpoint is", "nothing is known of it")
}
