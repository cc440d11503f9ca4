// Package model defines the decoder-only transformer that is sampled from and trained: its configuration, its weights
// and its one forward pass.
//
// The same graph-building functions ([Forward]) serve prefill, decode, scoring and training. What differs is the cache
// that is handed in, so a token's logprob is the same number in the sampler and in the trainer.
//
// The architecture is Qwen3's: pre-norm blocks of RMSNorm, rotary positions, grouped-query attention with normalised
// queries and keys, SwiGLU, and an output head that may be tied to the embedding. Folders hold config.json and
// safetensors under Hugging Face's names; GGUF files are read as if they were such a folder.
//
// Adapters and quantized weights come in through a hook ([Linear]) that is called for every linear layer, so this
// package knows nothing of LoRA.
package model
