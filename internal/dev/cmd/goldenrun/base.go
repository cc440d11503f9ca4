package main

import (
	"math"
	"math/rand/v2"
	"os"

	"github.com/goart-dev/art/internal/dev/gguftest"
)

const (
	hidden, heads, headDim, mlp, vocabulary = 32, 2, 16, 32, 260

	template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" +
		"{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

// writeBase writes the base model of all stored runs: one layer with random weights, and a token for each byte. It is
// not the built-in model, which changes from version to version.
func writeBase(path string) error {
	const arch = "qwen3"
	tokens, kinds := bytesAsTokens()
	values := []gguftest.Value{
		{Key: "general.architecture", Value: arch}, {Key: arch + ".block_count", Value: uint32(1)},
		{Key: arch + ".context_length", Value: uint32(256)}, {Key: arch + ".embedding_length", Value: uint32(hidden)},
		{Key: arch + ".feed_forward_length", Value: uint32(mlp)}, {Key: arch + ".attention.head_count", Value: uint32(heads)},
		{Key: arch + ".attention.head_count_kv", Value: uint32(heads)},
		{Key: arch + ".attention.key_length", Value: uint32(headDim)},
		{Key: arch + ".attention.layer_norm_rms_epsilon", Value: float32(1e-6)},
		{Key: arch + ".rope.freq_base", Value: float32(1e4)},
		{Key: "tokenizer.ggml.model", Value: "gpt2"}, {Key: "tokenizer.ggml.pre", Value: "qwen2"},
		{Key: "tokenizer.ggml.tokens", Value: tokens}, {Key: "tokenizer.ggml.token_type", Value: kinds},
		{Key: "tokenizer.ggml.merges", Value: []string{"h e"}},
		{Key: "tokenizer.ggml.eos_token_id", Value: uint32(vocabulary - 2)},
		{Key: "tokenizer.chat_template", Value: template},
	}
	return os.WriteFile(path, gguftest.Encode(values, randomTensors()), 0o644)
}

// bytesAsTokens returns the bytes in the alphabet of GPT-2, "he", and the marks of a chat.
func bytesAsTokens() (tokens []string, kinds []int32) {
	next := rune(256)
	for b := range rune(256) {
		c := b
		if b <= ' ' || b >= 0x7f && b <= 0xa0 || b == 0xad {
			c, next = next, next+1
		}
		tokens, kinds = append(tokens, string(c)), append(kinds, 1)
	}
	return append(tokens, "he", "<|im_start|>", "<|im_end|>", "<|endoftext|>"), append(kinds, 1, 3, 3, 3)
}

// randomTensors returns weights with a standard deviation of one over the square root of the width of their inputs.
func randomTensors() []gguftest.Tensor {
	random := rand.New(rand.NewPCG(1, 0))
	matrix := func(name string, out, in int) gguftest.Tensor {
		t := gguftest.Tensor{Name: name, Shape: []int{out, in}, Data: make([]float32, out*in)}
		for i := range t.Data {
			t.Data[i] = float32(random.NormFloat64() / math.Sqrt(float64(in)))
		}
		return t
	}
	ones := func(name string, n int) gguftest.Tensor {
		t := gguftest.Tensor{Name: name, Shape: []int{n}, Data: make([]float32, n)}
		for i := range t.Data {
			t.Data[i] = 1
		}
		return t
	}
	const wide = heads * headDim
	return []gguftest.Tensor{
		matrix("token_embd.weight", vocabulary, hidden), ones("output_norm.weight", hidden),
		ones("blk.0.attn_norm.weight", hidden), ones("blk.0.ffn_norm.weight", hidden),
		ones("blk.0.attn_q_norm.weight", headDim), ones("blk.0.attn_k_norm.weight", headDim),
		matrix("blk.0.attn_q.weight", wide, hidden), matrix("blk.0.attn_k.weight", wide, hidden),
		matrix("blk.0.attn_v.weight", wide, hidden), matrix("blk.0.attn_output.weight", hidden, wide),
		matrix("blk.0.ffn_gate.weight", mlp, hidden), matrix("blk.0.ffn_up.weight", mlp, hidden),
		matrix("blk.0.ffn_down.weight", hidden, mlp),
	}
}
