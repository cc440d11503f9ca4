package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/brief"
)

// neutral are values that switch anything off.
var neutral = []string{"null", "false", "0", "0.0", `""`, "[]", "{}"}

// one are neutral values of factors.
var one = []string{"1", "1.0"}

// forwardKeys are the keys of config.json, of any family that transformers builds, that change what a forward pass
// computes, with the further values that change nothing. Each is an error unless the architecture reads it:
// transformers would ignore some of them, and then the file contradicts itself. Keys of training (dropout, losses of
// routers) and those that every architecture reads (sizes, rope_theta, hidden_act) are not among them.
var forwardKeys = map[string][]string{
	// attention
	"sliding_window": nil, "use_sliding_window": nil, "sliding_window_pattern": one, "swa_config": nil,
	"attention_chunk_size": nil, "attn_logit_softcapping": nil, "attn_soft_cap": nil, "query_pre_attn_scalar": nil,
	"attention_multiplier": one, "attn_scale": nil, "attention_value_scale": one, "key_multiplier": one,
	"attention_in_multiplier": one, "attention_out_multiplier": one, "attn_temperature_tuning": nil, "clip_qkv": nil,
	"use_logn_attn": nil, "scale_attn_by_inverse_layer_idx": nil, "attn_output_gate": nil, "gated_attention": nil,
	"headwise_attn_output_gate": nil, "elementwise_attn_output_gate": nil, "use_differential_attention": nil,
	"use_bidirectional_attention": nil, "is_causal": {"true"}, "is_prefix_lm": nil, "alibi": nil, "use_alibi": nil,
	"qk_norm": nil, "use_qk_norm": nil, "qk_layernorm": nil, "use_qk_layernorm": nil,
	"kv_lora_rank": nil, "q_lora_rank": nil, "qk_rope_head_dim": nil, "qk_nope_head_dim": nil, "v_head_dim": nil,
	"index_topk": nil, "num_kv_shared_layers": nil, "use_cla": nil, "cla_share_factor": one,
	// biases
	"attention_bias": nil, "qkv_bias": nil, "use_qkv_bias": nil, "add_qkv_bias": nil, "attention_qkv_bias": nil,
	"attn_bias": nil, "attention_out_bias": nil, "use_bias": nil, "bias": nil, "add_bias_linear": nil, "mlp_bias": nil,
	"lm_head_bias": nil,
	// positions
	"partial_rotary_factor": one, "rotary_pct": one, "rotary_percent": one, "rope_pct": one, "rope_percentage": one,
	"rotary_dim": nil, "rope_dim": nil, "rotary_emb_base": nil, "rotary_base": nil, "rope_ratio": one,
	"rope_local_base_freq": nil, "local_rope_theta": nil, "global_rope_theta": nil, "swa_rope_theta": nil,
	"rope_interleaved": nil, "rope_interleave": nil, "use_mrope": nil, "mrope_section": nil, "mrope_interleaved": nil,
	"use_dynamic_ntk": nil, "use_xpos": nil, "use_rope": {"true"}, "no_rope_layers": nil, "no_rope_layer_interval": nil,
	"nope_layer_interval": nil, "position_embedding_type": {`"rope"`, `"rotary"`},
	// blocks
	"parallel_attn": nil, "parallel_attention": nil, "use_parallel_residual": nil, "parallel_residual": nil,
	"new_decoder_architecture": nil, "norm_type": {`"rmsnorm"`, `"rms_norm"`, `"RMSNorm"`}, "norm_after": nil,
	"use_post_norm": nil, "post_norm": nil, "residual_multiplier": one, "scale_depth": nil, "embedding_multiplier": one,
	"scale_emb": one, "embedding_scale": one, "normalize_embedding": nil, "hidden_activation": {`"silu"`},
	"mlp_multipliers": nil, "swiglu_limit": nil, "block_configs": nil, "layers_block_type": nil, "block_types": nil,
	"_block_types": nil, "hybrid_override_pattern": nil, "attn_type_list": nil, "attn_layer_indices": nil,
	"attn_layer_period": one, "full_attention_interval": one, "linear_attn_config": nil, "linear_num_key_heads": nil,
	"linear_num_value_heads": nil, "linear_conv_kernel_dim": nil, "conv_L_cache": nil, "full_attn_idxs": nil,
	"altup_num_inputs": nil, "laurel_rank": nil, "hidden_size_per_layer_input": nil, "activation_sparsity_pattern": nil,
	"cross_attention_layers": nil, "add_cross_attention": nil, "is_encoder_decoder": nil, "per_layer_config": nil,
	// logits
	"final_logit_softcapping": nil, "logits_scaling": one, "logit_scale": one, "lm_head_multiplier": one,
	"dim_model_base": nil,
	// mixtures of experts
	"num_experts": nil, "moe_intermediate_size": nil, "n_routed_experts": nil, "n_shared_experts": nil,
	"num_shared_experts": nil, "moe_num_experts": nil, "moe_num_shared_experts": nil,
	"shared_expert_intermediate_size": nil, "shared_intermediate_size": nil, "first_k_dense_replace": nil,
	"moe_layer_freq": one, "interleave_moe_layer_step": one, "routed_scaling_factor": one,
	"scoring_func": {`"softmax"`}, "topk_method": {`"greedy"`}, "n_group": one, "topk_group": one,
	"router_scaling_factor": one, "use_routing_bias": nil,
	// other weights, or beside text
	"quantization_config": nil, "compression_config": nil, "quantization": nil, "vision_config": nil,
	"audio_config": nil, "text_config": nil, "mm_vision_tower": nil,
}

// forwardParts are parts of the names of more such keys: state-space layers and attention sinks have many.
var forwardParts = []string{"mamba", "ssm_", "lightning_", "attention_sink", "attn_sink", "sink_token"}

// changesForward reports whether a key with this value changes the forward pass of an architecture that reads it.
func changesForward(key string, value json.RawMessage) bool {
	also := forwardKeys[key]
	return isForwardKey(key) && !absent(value) && !slices.Contains(neutral, string(value)) &&
		!slices.Contains(also, string(value))
}

func isForwardKey(key string) bool {
	_, known := forwardKeys[key]
	return known || slices.ContainsFunc(forwardParts, func(part string) bool { return strings.Contains(key, part) })
}

// checkForward reports what a configuration asks for that its architecture does not build.
func (c *Config) checkForward(a *architecture) error {
	data, err := c.marshalText() // compact, and with the keys that are not read
	var keys map[string]json.RawMessage
	if err := errors.Join(err, json.Unmarshal(data, &keys)); err != nil {
		return fmt.Errorf("model: config: %w", err)
	}
	if string(keys["use_sliding_window"]) == "false" || c.LayerTypes != nil { // which says whether there are windows
		delete(keys, "sliding_window")
	}
	said, err := checkQuantized(keys)
	errs := []error{err}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if slices.Contains(a.reads, key) || slices.Contains(said, key) || !changesForward(key, keys[key]) {
			continue
		}
		found := brief.Text(string(keys[key]))
		if isBuilt(key) {
			errs = append(errs, fmt.Errorf("model: config: %s is %s, which %s does not build", key, found, c.ModelType))
		} else {
			errs = append(errs, fmt.Errorf("model: config: %s is not supported (found %s)", key, found))
		}
	}
	return brief.Errors(errs)
}

func isBuilt(key string) bool {
	return slices.ContainsFunc(architectures(), func(a architecture) bool { return slices.Contains(a.reads, key) })
}

// textParts are the keys under which a model of several parts has the configuration of its text model.
var textParts = []string{"text_config", "llm_config", "language_config", "llm", "decoder", "thinker_config"}

// senses are the keys of the parts that read or write something else than text.
var senses = []struct{ key, what string }{
	{"vision_config", "images"}, {"vision_tower_config", "images"}, {"mm_vision_tower", "images"},
	{"vit_config", "images"}, {"visual", "images"},
	{"audio_config", "sound"}, {"speech_config", "sound"}, {"encoder_config", "sound"},
}

// classes are the ends of architectures that are no language models.
var classes = []struct{ end, what string }{
	{"ForSequenceClassification", "a classifier or a reward model"}, {"ForTokenClassification", "a classifier of tokens"},
	{"ForRewardModel", "a reward model"}, {"RewardModel", "a reward model"},
	{"ForProcessRewardModel", "a reward model"}, {"ForQuestionAnswering", "a model that marks answers"},
	{"ForMaskedLM", "an encoder"}, {"Model", "a model without an output head, as for embeddings"},
}

// layerKinds are parts of keys that tell of what a text model is built.
var layerKinds = []struct{ part, what string }{
	{"mamba", "Mamba layers"}, {"ssm_", "state-space layers"}, {"linear_num_", "linear attention"},
	{"lightning", "linear attention"}, {"kv_lora_rank", "latent attention"}, {"n_routed_experts", "experts"},
	{"num_local_experts", "experts"}, {"num_experts", "experts"},
}

// describe says what a checkpoint is that no architecture builds; "" when nothing is known.
func describe(c *Config, keys map[string]json.RawMessage) string {
	if name, text, ok := textPart(keys); ok {
		what := "a model of several parts"
		if s := sensesOf(keys); s != "" {
			what = "a model that reads " + s + " too"
		}
		what += ", around a text model"
		var inner Config
		_ = json.Unmarshal(text["model_type"], &inner.ModelType) // of another type it is unknown
		switch _, err := inner.architecture(); {
		case inner.ModelType == "":
			return fmt.Sprintf("%s whose model_type %s does not say", what, name)
		case err == nil:
			return fmt.Sprintf("%s of model_type %q: use a checkpoint of that text model alone", what, inner.ModelType)
		}
		kinds := kindsOf(text)
		if kinds != "" {
			kinds = " with " + kinds
		}
		return fmt.Sprintf("%s of model_type %q%s, which is not supported either", what, inner.ModelType, kinds)
	}
	if s := sensesOf(keys); s != "" {
		return "a model that reads " + s + " too"
	}
	if string(keys["is_encoder_decoder"]) == "true" {
		return "an encoder with a decoder"
	}
	for _, class := range c.Architectures {
		for _, k := range classes {
			if strings.HasSuffix(class, k.end) {
				return k.what
			}
		}
	}
	if c.ModelType == "" && !absent(keys["peft_type"]) {
		return "an adapter, not a model: load it beside its base model"
	}
	if kinds := kindsOf(keys); kinds != "" {
		return "a text model with " + kinds
	}
	return ""
}

func textPart(keys map[string]json.RawMessage) (name string, text map[string]json.RawMessage, ok bool) {
	for _, name := range textParts {
		if json.Unmarshal(keys[name], &text) == nil && len(text) > 0 {
			if inner, inside, ok := textPart(text); ok {
				return name + "." + inner, inside, true
			}
			return name, text, true
		}
	}
	return "", nil, false
}

// sensesOf lists what a model reads beside text.
func sensesOf(keys map[string]json.RawMessage) string {
	var list []string
	for _, s := range senses {
		if !absent(keys[s.key]) && !slices.Contains(list, s.what) {
			list = append(list, s.what)
		}
	}
	if !absent(keys["thinker_config"]) { // of the Omni models, which has the senses
		var inside map[string]json.RawMessage
		if json.Unmarshal(keys["thinker_config"], &inside) == nil {
			return cmp.Or(sensesOf(inside), strings.Join(list, " and "))
		}
	}
	return strings.Join(list, " and ")
}

func kindsOf(keys map[string]json.RawMessage) string {
	var list []string
	for _, k := range layerKinds {
		for key, value := range keys {
			if strings.Contains(key, k.part) && !absent(value) && !slices.Contains(neutral, string(value)) &&
				!slices.Contains(list, k.what) {
				list = append(list, k.what)
			}
		}
	}
	return strings.Join(list, " and ")
}
