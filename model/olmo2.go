package model

import "encoding/json"

// olmo2, of OLMo 2, is Llama's block with norms behind attention and MLP instead of before them, and with queries and
// keys normalised over all heads together (OLMo Team 2024).
var olmo2 = architecture{
	modelType: "olmo2", class: "Olmo2ForCausalLM", reads: append([]string{"attention_bias"}, headNormKeys...),
	defaults: olmo2Defaults, describe: describeOLMo2,
}

func describeOLMo2(c *Config, check checker) *design {
	d := plain(c, check)
	for i := range d.layers {
		d.layers[i].normalize(c.NumHeads*c.HeadDim, c.NumKVHeads*c.HeadDim)
		d.layers[i].normalizeAfter(c)
	}
	return d
}

// normalizeAfter has norms of what attention and MLP return, and none before them.
func (l *layer) normalizeAfter(c *Config) {
	l.mixing.before, l.mixing.after = norm{}, c.norm("post_attention_layernorm", "post_attention_norm")
	l.feeding.before, l.feeding.after = norm{}, c.norm("post_feedforward_layernorm", "post_ffw_norm")
}

func olmo2Defaults(c *Config, keys map[string]json.RawMessage) error {
	unsaid(keys, "rms_norm_eps", &c.RMSNormEps, 1e-5)
	return nil
}
