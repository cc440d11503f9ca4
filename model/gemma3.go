package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// gemma3, of Gemma 3's text models, has norms before and after attention and MLP, whose weights are offsets from 1, and
// normalises queries and keys per head. Its MLP has a GELU; its embedding is multiplied by sqrt(D). Most layers have a
// sliding window and their own RoPE base; the others have full attention and may scale RoPE (Gemma Team 2025).
var gemma3 = architecture{
	modelType: "gemma3_text", class: "Gemma3ForCausalLM",
	reads: append([]string{"sliding_window", "sliding_window_pattern", "rope_local_base_freq", "hidden_activation",
		"query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping", "attention_bias"}, headNormKeys...),
	windowed: true, defaults: gemma3Defaults, describe: describeGemma3, rope: ropeForm{kinds: true},
}

func describeGemma3(c *Config, check checker) *design {
	checkActivation(c.HiddenActivation, "hidden_activation", check)
	check(positive(c.QueryScalar), "query_pre_attn_scalar is %v, want a positive number", c.QueryScalar)
	for name, x := range map[string]float64{
		"attn_logit_softcapping": c.AttentionSoftCap, "final_logit_softcapping": c.FinalSoftCap,
	} {
		check(x == 0 || positive(x), "%s is %v, want a positive number", name, x)
		check(x == 0 || c.wrapper == nil, "%s is %v, which transformers does not apply in a model that reads images", name, x)
	}
	with := *c
	with.HiddenAct = c.HiddenActivation // the key of others
	d := plain(&with, func(bool, string, ...any) {})
	d.embedding = embedding{scale: math.Sqrt(float64(c.HiddenSize)), frozen: true}
	d.norm.offset, d.head.cap = 1, c.FinalSoftCap
	d.slide(c, check)
	for i := range d.layers {
		l := &d.layers[i]
		l.scale, l.cap = 1/math.Sqrt(c.QueryScalar), c.AttentionSoftCap
		l.normalize(c.HeadDim, c.HeadDim)
		l.mixing.after = c.norm("post_attention_layernorm", "post_attention_norm")
		l.feeding.before = c.norm("pre_feedforward_layernorm", "ffn_norm")
		l.feeding.after = c.norm("post_feedforward_layernorm", "post_ffw_norm")
		for _, n := range []*norm{
			&l.mixing.before, &l.qNorm, &l.kNorm, &l.mixing.after, &l.feeding.before, &l.feeding.after,
		} {
			n.offset = 1
		}
		if l.window > 0 {
			l.rope.theta, l.rope.scaling = c.RopeLocalTheta, nil
			check(positive(c.RopeLocalTheta), "rope_local_base_freq is %v, want a positive number", c.RopeLocalTheta)
		}
	}
	return d
}

// gemma3Defaults sets what a file may leave out. A pattern of n is n-1 layers with a window, and then one without.
func gemma3Defaults(c *Config, keys map[string]json.RawMessage) error {
	// Published ones of 4B and more leave out all of these.
	unsaid(keys, "vocab_size", &c.VocabSize, 262208)
	unsaid(keys, "max_position_embeddings", &c.MaxPositions, 131072)
	unsaid(keys, "num_attention_heads", &c.NumHeads, 8)
	unsaid(keys, "num_key_value_heads", &c.NumKVHeads, 4)
	unsaid(keys, "head_dim", &c.HeadDim, 256)
	unsaid(keys, "tie_word_embeddings", &c.TieEmbeddings, true)
	unsaid(keys, "sliding_window", &c.SlidingWindow, 4096)
	c.HiddenActivation = cmp.Or(c.HiddenActivation, "gelu_pytorch_tanh")
	if absent(keys["query_pre_attn_scalar"]) {
		c.QueryScalar = 256
	}
	var scaling map[string]json.RawMessage
	if _ = json.Unmarshal(keys["rope_scaling"], &scaling); absent(scaling["rope_type"]) && !absent(scaling["type"]) {
		return errors.New("rope_scaling: transformers 5 does not read its type, which 4 does: name it rope_type")
	}
	c.RopeTheta = cmp.Or(c.RopeTheta, 1e6)
	c.RopeLocalTheta = cmp.Or(c.RopeLocalTheta, 1e4)
	pattern := 6
	if raw, ok := keys["sliding_window_pattern"]; ok {
		if err := json.Unmarshal(raw, &pattern); err != nil || pattern < 1 {
			return fmt.Errorf("sliding_window_pattern is %s, want a number above 0", raw)
		}
	}
	if c.LayerTypes == nil {
		c.alternate(pattern)
	}
	return nil
}
