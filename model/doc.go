// Package model defines the decoder-only transformer that is sampled from and trained: its configuration, its weights
// and its one forward pass.
//
// The same graph-building functions ([Forward]) serve prefill, decode, scoring and training. Only the cache that is
// passed in differs, so a token's logprob is the same number in the sampler and in the trainer.
//
// All architectures are blocks of RMSNorm, rotary embeddings, grouped-query attention and gated MLPs, with an output
// head that may be tied to the embedding: Llama, Qwen2, Qwen3 and its mixtures of experts, Mistral, Granite, Gemma 3.
// One file for each derives a description of the blocks from config.json, on which everything else depends;
// docs/models.md says how to add one. Folders hold config.json and safetensors under Hugging Face's names; GGUF
// files are read as if they were such a folder.
//
// Adapters are applied by a hook (Linear of [Forward]) that is called for every linear layer inside the blocks (of a
// model with experts: those of attention), so this package knows nothing of LoRA.
package model
