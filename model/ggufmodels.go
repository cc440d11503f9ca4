package model

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/goart-dev/art/internal/gguf"
)

// ggufModel maps an architecture of llama.cpp to one of Hugging Face, and says how its tensors were changed.
// Source: convert_hf_to_gguf.py and src/llama-model.cpp, https://github.com/ggml-org/llama.cpp
type ggufModel struct {
	modelType    string // of config.json
	architecture string // of config.json
	interleaved  bool   // rows of queries and keys were interleaved, for a RoPE that rotates adjacent pairs
	offsetNorms  bool   // 1 was added to the weights of norms
	sandwich     bool   // norms before and after attention and MLP
	// config adds the keys of config.json that are specific to the architecture.
	config func(h *ggufHeader, c map[string]any)
}

var ggufModels = map[string]ggufModel{
	"qwen2":    {modelType: qwen2.modelType, architecture: qwen2.class},
	"qwen3":    {modelType: qwen3.modelType, architecture: qwen3.class},
	"qwen3moe": {modelType: qwen3MoE.modelType, architecture: qwen3MoE.class, config: qwen3MoEConfig},
	"llama":    {modelType: llama.modelType, architecture: llama.class, interleaved: true, config: llamaConfig},
	"granite":  {modelType: granite.modelType, architecture: granite.class, interleaved: true, config: graniteConfig},
	"gemma3": {modelType: gemma3.modelType, architecture: gemma3.class, offsetNorms: true, sandwich: true,
		config: gemma3Config},
}

// qwen3MoEConfig: the weights of a token's experts always add up to 1, and a layer without a router has no experts.
func qwen3MoEConfig(h *ggufHeader, c map[string]any) {
	h.need(c, "num_experts", "expert_count")
	h.need(c, "num_experts_per_tok", "expert_used_count")
	h.need(c, "moe_intermediate_size", "expert_feed_forward_length")
	dense := []int{}
	for l := range min(h.int("block_count"), mostLayers) {
		if !h.has(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", l)) {
			dense = append(dense, l)
		}
	}
	c["norm_topk_prob"], c["mlp_only_layers"] = true, dense
}

// llamaConfig is for Llama and all that llama.cpp writes as Llama: Mistral, SmolLM2, Hermes, ...
func llamaConfig(h *ggufHeader, c map[string]any) {
	c["attention_bias"] = h.has("blk.0.attn_q.bias")
	c["mlp_bias"] = h.has("blk.0.ffn_gate.bias")
	if h.copy(c, "sliding_window", "attention.sliding_window") {
		c["model_type"], c["architectures"] = mistral.modelType, []string{mistral.class}
	}
}

func graniteConfig(h *ggufHeader, c map[string]any) {
	c["attention_bias"] = h.has("blk.0.attn_q.bias")
	c["mlp_bias"] = h.has("blk.0.ffn_gate.bias")
	for key, from := range map[string]string{
		"attention_multiplier": "attention.scale", "embedding_multiplier": "embedding_scale",
		"residual_multiplier": "residual_scale", "logits_scaling": "logit_scale",
	} {
		h.need(c, key, from)
	}
}

// gemma3Config adds what llama.cpp hard-codes for Gemma 3: every sixth layer has full attention, the RoPE base of the
// others, and the largest model, of 62 layers, scales queries by hidden size and heads.
func gemma3Config(h *ggufHeader, c map[string]any) {
	const pattern, layersOf27B = 6, 62
	h.need(c, "sliding_window", "attention.sliding_window")
	c["rope_local_base_freq"] = 10000.0
	h.copy(c, "rope_local_base_freq", "rope.freq_base_swa")
	c["hidden_activation"] = "gelu_pytorch_tanh"
	delete(c, "hidden_act")
	layers, heads := h.int("block_count"), h.int("attention.head_count")
	if c["query_pre_attn_scalar"] = c["head_dim"]; layers == layersOf27B && heads > 0 {
		c["query_pre_attn_scalar"] = h.int("embedding_length") / heads
	}
	types := make([]string, min(layers, mostLayers))
	for i := range types {
		if types[i] = layerSliding; i%pattern == pattern-1 {
			types[i] = layerFull
		}
	}
	c["layer_types"], c["sliding_window_pattern"] = types, pattern
	h.copy(c, "final_logit_softcapping", "final_logit_softcapping")
}

// ggufHeader reads the metadata of an architecture. It keeps the first error.
type ggufHeader struct {
	file *gguf.File
	arch string
	err  error
}

func (h *ggufHeader) fail(format string, args ...any) {
	if h.err == nil {
		h.err = fmt.Errorf("model: GGUF: "+format, args...)
	}
}

func (h *ggufHeader) has(tensor string) bool {
	_, ok := h.file.Tensor(tensor)
	return ok
}

func (h *ggufHeader) text(key string) string {
	v, _ := h.file.Value(h.arch + "." + key)
	s, _ := v.(string)
	return s
}

// number returns an int, a float64 or nil. A float32 is the shortest decimal that rounds to it, as in config.json.
func (h *ggufHeader) number(key string) any {
	key = h.arch + "." + key
	value, ok := h.file.Value(key)
	if !ok {
		return nil
	}
	switch n := reflect.ValueOf(value); {
	case n.CanInt():
		return int(n.Int())
	case n.CanUint():
		return int(min(n.Uint(), math.MaxInt))
	case n.Kind() == reflect.Float32:
		short, _ := strconv.ParseFloat(strconv.FormatFloat(n.Float(), 'g', -1, 32), 64)
		return short
	case n.CanFloat():
		return n.Float()
	}
	h.fail("%s is a %T, want a number: models whose layers differ are not supported", key, value)
	return nil
}

func (h *ggufHeader) int(key string) int {
	n, _ := h.number(key).(int)
	return n
}

// copy puts a number into config.json, and reports whether there is one.
func (h *ggufHeader) copy(c map[string]any, key, from string) bool {
	n := h.number(from)
	if n != nil {
		c[key] = n
	}
	return n != nil
}

// need is copy for what a file must have.
func (h *ggufHeader) need(c map[string]any, key, from string) {
	if !h.copy(c, key, from) {
		h.fail("the metadata has no %s.%s", h.arch, from)
	}
}

// llama.cpp's names of the tensors of a model, and those of a Hugging Face checkpoint. Both are followed by ".weight"
// or ".bias". Source: gguf-py's tensor_mapping.py, https://github.com/ggml-org/llama.cpp

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

// expertNames returns what precedes and follows the number of an expert in the names of a tensor that holds experts.
func expertNames(name string) (before, after string, ok bool) {
	stem, kind := cutKind(name)
	layer, part, ok := cutBlock(stem)
	if !ok {
		return "", "", false
	}
	part, ok = ggufExperts[part]
	return layer + "mlp.experts.", "." + part + kind, ok
}

func cutKind(name string) (stem, kind string) {
	at := strings.LastIndexByte(name, '.')
	if at < 0 {
		return name, ""
	}
	return name[:at], name[at:]
}

// cutBlock returns the prefix of the checkpoint names of the block that a name of llama.cpp is in, and the rest.
func cutBlock(stem string) (layer, part string, ok bool) {
	number, part, ok := strings.Cut(strings.TrimPrefix(stem, "blk."), ".")
	n, err := strconv.Atoi(number)
	if !ok || !strings.HasPrefix(stem, "blk.") || err != nil || n < 0 || strconv.Itoa(n) != number {
		return "", "", false
	}
	return layerName(n), part, true
}
