package model

import (
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/goart-dev/art/internal/gguf"
)

// ggufModel maps an architecture of llama.cpp to one of Hugging Face, and says how its tensors were changed, besides
// the offsets of norms, which llama.cpp adds to their weights. Names of tensors are in the pieces of a [design], from
// gguf-py's tensor_mapping.py.
// Source: convert_hf_to_gguf.py and src/llama-model.cpp, https://github.com/ggml-org/llama.cpp
type ggufModel struct {
	modelType    string // of config.json
	architecture string // of config.json
	interleaved  bool   // rows of queries and keys were interleaved, for a RoPE that rotates adjacent pairs
	// config adds the keys of config.json that are specific to the architecture.
	config func(h *ggufHeader, c map[string]any)
}

var ggufModels = map[string]ggufModel{
	"qwen2":    {modelType: qwen2.modelType, architecture: qwen2.class},
	"qwen3":    {modelType: qwen3.modelType, architecture: qwen3.class},
	"qwen3moe": {modelType: qwen3MoE.modelType, architecture: qwen3MoE.class, config: qwen3MoEConfig},
	"llama":    {modelType: llama.modelType, architecture: llama.class, interleaved: true, config: llamaConfig},
	"granite":  {modelType: granite.modelType, architecture: granite.class, interleaved: true, config: graniteConfig},
	"gemma3": {modelType: gemma3.modelType, architecture: gemma3.class,
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
