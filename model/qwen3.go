package model

import (
	"encoding/json"
	"slices"
)

// qwen3, of Qwen3's dense models, is Llama's block with queries and keys normalised per head (Yang et al. 2025), and
// with biases in all of attention or in none.
var qwen3 = architecture{
	modelType: "qwen3", class: "Qwen3ForCausalLM",
	reads:    slices.Concat(qwenReads, headNormKeys, []string{"attention_bias"}),
	defaults: qwen3Defaults, describe: describeQwen3,
}

// qwen3VL is the text model of Qwen3-VL: qwen3 without windows.
var qwen3VL = architecture{
	modelType: "qwen3_vl_text", reads: append([]string{"attention_bias"}, headNormKeys...), defaults: qwen3VLDefaults,
	describe: describeQwen3,
}

func qwen3VLDefaults(c *Config, keys map[string]json.RawMessage) error {
	unsaid(keys, "head_dim", &c.HeadDim, 128)
	unsaid(keys, "num_key_value_heads", &c.NumKVHeads, 32)
	if c.RopeTheta == 0 && absent(keys["rope_theta"]) {
		c.RopeTheta = 5e5
	}
	return nil
}

// headNormKeys say that queries and keys are normalised. These models do so without being asked.
var headNormKeys = []string{"qk_norm", "use_qk_norm", "qk_layernorm", "use_qk_layernorm"}

func qwen3Defaults(c *Config, keys map[string]json.RawMessage) error {
	unsaid(keys, "head_dim", &c.HeadDim, 128)
	return qwenDefaults(c, keys)
}

func describeQwen3(c *Config, check checker) *design {
	d := plain(c, check)
	for i := range d.layers {
		d.layers[i].normalize(c.HeadDim, c.HeadDim)
	}
	d.qwenWindows(c, check)
	return d
}

// qwen3MoE, of Qwen3's mixtures of experts, is qwen3 with many small MLPs, of which a router chooses some for each
// token (Yang et al. 2025). Adapters attach to its attention only.
var qwen3MoE = architecture{
	modelType: "qwen3_moe", class: "Qwen3MoeForCausalLM",
	reads:    append([]string{"num_experts", "moe_intermediate_size"}, qwen3.reads...),
	defaults: qwen3MoEDefaults, describe: describeQwen3MoE,
}

// mostExperts bounds the experts of all layers together.
const mostExperts = 1 << 15

func qwen3MoEDefaults(c *Config, keys map[string]json.RawMessage) error {
	return qwenWindow(c, keys)
}

func describeQwen3MoE(c *Config, check checker) *design {
	d := plain(c, check)
	check(c.NumExperts > 0 && c.NumExperts <= mostExperts/max(c.NumLayers, 1), "num_experts is %d, want 1 to %d",
		c.NumExperts, mostExperts/max(c.NumLayers, 1))
	check(c.ExpertsPerToken > 0 && c.ExpertsPerToken <= c.NumExperts, "num_experts_per_tok is %d, want 1 to %d",
		c.ExpertsPerToken, c.NumExperts)
	check(c.MoEIntermediateSize > 0 && c.MoEIntermediateSize <= mostSize, "moe_intermediate_size is %d, want 1 to %d",
		c.MoEIntermediateSize, mostSize)
	check(c.DecoderSparseStep >= 0, "decoder_sparse_step is %d, want a number above 0", c.DecoderSparseStep)
	for i := range d.layers {
		l := &d.layers[i]
		l.normalize(c.HeadDim, c.HeadDim)
		if (i+1)%max(c.DecoderSparseStep, 1) == 0 && !slices.Contains(c.MLPOnlyLayers, i) {
			l.feed = c.experts()
		} else {
			l.feed = l.feed.(mlp).frozen()
		}
		if c.UseSlidingWindow {
			l.window = c.SlidingWindow
		}
	}
	return d
}

// experts returns those of a layer of Qwen3.
func (c *Config) experts() experts {
	of := func(name, file string, in, out int) linear {
		return linear{name: name, file: file, in: in, out: out, frozen: true}
	}
	hidden, inner := c.HiddenSize, c.MoEIntermediateSize
	e := experts{
		router: of("mlp.gate", "ffn_gate_inp", hidden, c.NumExperts), count: c.NumExperts, top: c.ExpertsPerToken,
		normalized: c.NormTopKProb, name: "mlp.experts.",
		expert: mlp{
			gate: of("gate_proj", "ffn_gate_exps", hidden, inner), up: of("up_proj", "ffn_up_exps", hidden, inner),
			down: of("down_proj", "ffn_down_exps", inner, hidden), activation: c.HiddenAct,
		},
	}
	e.expert.down.joins = true
	return e
}
