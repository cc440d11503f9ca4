package model

import (
	"strconv"
	"strings"
)

// llama.cpp's names of the tensors of a model, and those of a Hugging Face checkpoint. Both are followed by ".weight"
// or ".bias". Source: gguf-py's tensor_mapping.py, https://github.com/ggml-org/llama.cpp

// ggufTop are the tensors outside of the blocks.
var ggufTop = map[string]string{
	"token_embd":  "model.embed_tokens",
	"output_norm": "model.norm",
	"output":      "lm_head",
}

// ggufBlock are the tensors of a block: "blk.7.attn_q" is "model.layers.7.self_attn.q_proj".
var ggufBlock = map[string]string{
	"attn_norm":    "input_layernorm",
	"attn_q":       "self_attn.q_proj",
	"attn_k":       "self_attn.k_proj",
	"attn_v":       "self_attn.v_proj",
	"attn_output":  "self_attn.o_proj",
	"attn_q_norm":  "self_attn.q_norm",
	"attn_k_norm":  "self_attn.k_norm",
	"ffn_norm":     "post_attention_layernorm",
	"ffn_gate":     "mlp.gate_proj",
	"ffn_up":       "mlp.up_proj",
	"ffn_down":     "mlp.down_proj",
	"ffn_gate_inp": "mlp.gate",
}

// ggufSandwich are the norms of a block that has them before and after attention and MLP, like Gemma's.
var ggufSandwich = map[string]string{
	"post_attention_norm": "post_attention_layernorm",
	"ffn_norm":            "pre_feedforward_layernorm",
	"post_ffw_norm":       "post_feedforward_layernorm",
}

// ggufExperts are the tensors that hold a linear layer of all experts of a block, one expert after another.
var ggufExperts = map[string]string{
	"ffn_gate_exps": "gate_proj",
	"ffn_up_exps":   "up_proj",
	"ffn_down_exps": "down_proj",
}

// checkpointName returns the checkpoint name for one of llama.cpp. ok is false when there is none.
func (m ggufModel) checkpointName(name string) (full string, ok bool) {
	stem, kind := cutKind(name)
	if top, ok := ggufTop[stem]; ok {
		return top + kind, true
	}
	layer, part, ok := cutBlock(stem)
	if !ok {
		return "", false
	}
	if m.sandwich {
		if norm, ok := ggufSandwich[part]; ok {
			return layer + norm + kind, true
		}
	}
	part, ok = ggufBlock[part]
	return layer + part + kind, ok
}

// expertNames returns, for a tensor that holds the experts of a block, what precedes and follows the number of an
// expert in its name.
func expertNames(name string) (before, after string, ok bool) {
	stem, kind := cutKind(name)
	layer, part, ok := cutBlock(stem)
	if !ok {
		return "", "", false
	}
	part, ok = ggufExperts[part]
	return layer + "mlp.experts.", "." + part + kind, ok
}

// cutKind cuts ".weight" or ".bias" off a name.
func cutKind(name string) (stem, kind string) {
	at := strings.LastIndexByte(name, '.')
	if at < 0 {
		return name, ""
	}
	return name[:at], name[at:]
}

// cutBlock returns the prefix of the checkpoint names of the block that a name of llama.cpp is in, and the rest of the
// name.
func cutBlock(stem string) (layer, part string, ok bool) {
	number, part, ok := strings.Cut(strings.TrimPrefix(stem, "blk."), ".")
	n, err := strconv.Atoi(number)
	if !ok || !strings.HasPrefix(stem, "blk.") || err != nil || n < 0 || strconv.Itoa(n) != number {
		return "", "", false
	}
	return layerName(n), part, true
}
