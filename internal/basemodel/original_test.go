package basemodel

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOriginal: the checkpoint is named by what files of several converters say of it, and never by what it was
// trained from.
func TestOriginal(t *testing.T) {
	for want, texts := range map[string]map[string]string{
		"":                                    {},
		"HuggingFaceTB/SmolLM2-135M-Instruct": {"source.huggingface.repository": "HuggingFaceTB/SmolLM2-135M-Instruct"},
		"org/source":                          {"source.url": "https://huggingface.co/org/source/", "repo_url": "https://huggingface.co/org/other"},
		"org/model":                           {"source.url": "https://huggingface.co/org/model-GGUF", "repo_url": "https://huggingface.co/org/model"},
		"Qwen2.5 Coder 1.5B Instruct": {"name": "Qwen2.5 Coder 1.5B Instruct GGUF", "url": "https://example.org/a/b",
			"repo_url": "https://huggingface.co/Qwen"},
		"Qwen/Qwen3-4B": {"name": "Qwen3-4B-GGUF", "base_model.0.name": "Qwen3 4B", "base_model.0.organization": "Qwen",
			"base_model.0.repo_url": "https://huggingface.co/Qwen/Qwen3-4B", "repo_url": "https://huggingface.co/copies"},
		"Meta-Llama/Llama-3.1-8B": {"name": "Llama 3.1 8B", "base_model.0.name": "Llama 3.1 8B",
			"base_model.0.organization": "Meta Llama"},
		"Qwen2.5 0.5B Instruct": {"name": "Qwen2.5 0.5B Instruct", "base_model.0.name": "Qwen2.5 0.5B",
			"base_model.0.organization": "Qwen", "base_model.0.repo_url": "https://huggingface.co/Qwen/Qwen2.5-0.5B"},
	} {
		metadata := map[string]any{"general.base_model.count": uint32(1)}
		for key, text := range texts {
			metadata["general."+key] = text
		}
		require.Equal(t, want, original(metadata))
	}
	merged := map[string]any{"general.name": "A", "general.base_model.count": uint32(2), "general.base_model.0.name": "A",
		"general.base_model.0.organization": "org"}
	require.Equal(t, "A", original(merged))
}
