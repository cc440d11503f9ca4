package model

// ModelTypeLlama is that of Llama 2 and 3, and of what has its form: SmolLM2, some of Hermes and of the DeepSeek-R1
// distills.
const ModelTypeLlama = "llama"

// llama is a block of RMSNorm, rotary positions, grouped-query attention and SwiGLU (Touvron et al. 2023), with biases
// if the configuration says so. Llama 3.1 and later stretch their positions.
var llama = architecture{modelType: ModelTypeLlama, class: "LlamaForCausalLM", describe: describeLlama}

func describeLlama(c *Config, check checker) *design {
	d := plain(c, check)
	d.qkvBias, d.outBias, d.mlpBias = c.AttentionBias, c.AttentionBias, c.MLPBias
	return d
}
