package model

import (
	"cmp"
	"encoding/json"
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
	defaults: gemma3Defaults, describe: describeGemma3,
}

func describeGemma3(c *Config, check checker) *design {
	d := plain(c, func(bool, string, ...any) {}) // its activation is under another key
	d.activation = activationOf(c.HiddenActivation, "hidden_activation", check)
	d.qkvBias, d.outBias = c.AttentionBias, c.AttentionBias
	d.headNorm, d.postNorm, d.normOffset = true, true, 1
	d.embedScale = math.Sqrt(float64(c.HiddenSize))
	check(positive(c.QueryScalar), "query_pre_attn_scalar is %v, want a positive number", c.QueryScalar)
	d.queryScale = 1 / math.Sqrt(c.QueryScalar)
	check(c.AttentionSoftCap == 0 || positive(c.AttentionSoftCap), "attn_logit_softcapping is %v, want a positive number",
		c.AttentionSoftCap)
	check(c.FinalSoftCap == 0 || positive(c.FinalSoftCap), "final_logit_softcapping is %v, want a positive number",
		c.FinalSoftCap)
	d.scoreCap, d.logitCap = c.AttentionSoftCap, c.FinalSoftCap
	d.slide(c, check)
	for i, l := range d.layers {
		if l.window > 0 {
			d.layers[i].rope = rope{theta: c.RopeLocalTheta}
			check(positive(c.RopeLocalTheta), "rope_local_base_freq is %v, want a positive number", c.RopeLocalTheta)
		}
	}
	return d
}

// gemma3Defaults sets what a file may leave out. A pattern of n is n-1 layers with a window, and then one without.
func gemma3Defaults(c *Config, keys map[string]json.RawMessage) error {
	if _, ok := keys["head_dim"]; !ok {
		c.HeadDim = 256
	}
	c.HiddenActivation = cmp.Or(c.HiddenActivation, "gelu_pytorch_tanh")
	c.QueryScalar = cmp.Or(c.QueryScalar, 256)
	c.RopeTheta = cmp.Or(c.RopeTheta, 1e6)
	c.RopeLocalTheta = cmp.Or(c.RopeLocalTheta, 1e4)
	if _, ok := keys["tie_word_embeddings"]; !ok {
		c.TieEmbeddings = true
	}
	if _, ok := keys["sliding_window"]; !ok {
		c.SlidingWindow = 4096
	}
	pattern := 6
	if raw, ok := keys["sliding_window_pattern"]; ok {
		if err := json.Unmarshal(raw, &pattern); err != nil || pattern < 1 {
			return fmt.Errorf("sliding_window_pattern is %s, want a number above 0", raw)
		}
	}
	if c.LayerTypes != nil {
		return nil
	}
	for i := range min(c.NumLayers, mostLayers) {
		kind := layerSliding
		if (i+1)%pattern == 0 {
			kind = layerFull
		}
		c.LayerTypes = append(c.LayerTypes, kind)
	}
	return nil
}
