package model

import "encoding/json"

// phi3, of Phi-3 and Phi-4, is Llama's block with the projections to queries, keys and values in one matrix, and those
// of the MLP's gate in another; and with a sliding window in all layers if configured (Abdin et al. 2024).
var phi3 = architecture{
	modelType: "phi3", class: "Phi3ForCausalLM", reads: []string{"sliding_window", "partial_rotary_factor"},
	defaults: phi3Defaults, describe: describePhi3, rope: ropeForm{partial: 1, long: true},
}

func describePhi3(c *Config, check checker) *design {
	d := plain(c, check)
	for i := range d.layers {
		l := &d.layers[i]
		l.window = c.SlidingWindow
		l.q = linear{name: "self_attn.qkv_proj", in: c.HiddenSize,
			out: (c.NumHeads + 2*c.NumKVHeads) * c.HeadDim}
		l.k, l.v = linear{}, linear{}
		l.feed = c.mlp().fused("mlp.gate_up_proj", "mlp.down_proj", c.IntermediateSize)
	}
	return d
}

func phi3Defaults(c *Config, keys map[string]json.RawMessage) error {
	unsaid(keys, "rms_norm_eps", &c.RMSNormEps, 1e-5)
	return zeroWindow(keys)
}
