package model

// ModelTypeQwen3 is that of Qwen3's dense models.
const ModelTypeQwen3 = "qwen3"

// qwen3 is Llama's block with queries and keys that are normalised head by head (Yang et al. 2025), and with biases at all of
// attention or at none.
var qwen3 = architecture{modelType: ModelTypeQwen3, class: "Qwen3ForCausalLM", defaults: qwenDefaults, describe: describeQwen3}

func describeQwen3(c *Config, check checker) *design {
	d := plain(c, check)
	d.headNorm = true
	d.qkvBias, d.outBias = c.AttentionBias, c.AttentionBias
	d.qwenWindows(c, check)
	return d
}
