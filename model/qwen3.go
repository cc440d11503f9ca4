package model

import (
	"encoding/json"
	"slices"
)

// ModelTypeQwen3 is the model_type of Qwen3's dense models.
const ModelTypeQwen3 = "qwen3"

// qwen3 is Llama's block with queries and keys normalised per head (Yang et al. 2025), and with biases in all of
// attention or in none.
var qwen3 = architecture{
	modelType: ModelTypeQwen3, class: "Qwen3ForCausalLM",
	reads:    slices.Concat(qwenReads, headNormKeys, []string{"attention_bias"}),
	defaults: qwen3Defaults, describe: describeQwen3,
}

// headNormKeys say that queries and keys are normalised. These models do so without being asked.
var headNormKeys = []string{"qk_norm", "use_qk_norm", "qk_layernorm", "use_qk_layernorm"}

// qwen3Defaults sets heads of 128 where the key is absent.
func qwen3Defaults(c *Config, keys map[string]json.RawMessage) error {
	if _, ok := keys["head_dim"]; !ok {
		c.HeadDim = 128
	}
	return qwenDefaults(c, keys)
}

func describeQwen3(c *Config, check checker) *design {
	d := plain(c, check)
	d.headNorm = true
	d.qkvBias, d.outBias = c.AttentionBias, c.AttentionBias
	d.qwenWindows(c, check)
	return d
}
