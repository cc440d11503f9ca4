package model

// llama, of Llama 2 and 3, SmolLM2, some of Hermes and of the DeepSeek-R1 distills, is a block of RMSNorm, rotary
// embeddings, grouped-query attention and SwiGLU (Touvron et al. 2023), with biases if configured. Llama 3.1 and later
// scale RoPE.
var llama = architecture{modelType: "llama", class: "LlamaForCausalLM", describe: plain,
	reads: []string{"attention_bias", "mlp_bias"}}
