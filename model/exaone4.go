package model

import (
	"encoding/json"
	"fmt"
)

// exaone4, of EXAONE 4.0, is Llama's block with norms behind attention and MLP, and queries and keys normalised per
// head. Most layers of the larger one have a window, and the others no rotary embeddings; the smaller one has no
// windows (LG AI Research 2025).
var exaone4 = architecture{
	modelType: "exaone4", class: "Exaone4ForCausalLM", windowed: true,
	reads:    append([]string{"sliding_window", "sliding_window_pattern"}, headNormKeys...),
	defaults: exaone4Defaults, describe: describeEXAONE4,
}

func describeEXAONE4(c *Config, check checker) *design {
	d := plain(c, check)
	d.slide(c, check)
	for i := range d.layers {
		l := &d.layers[i]
		l.normalize(c.HeadDim, c.HeadDim)
		l.normalizeAfter(c)
		if c.SlidingWindow > 0 && l.window == 0 {
			l.rope = rope{}
		}
	}
	return d
}

// exaone4Defaults sets what a file may leave out. A pattern of n is n-1 layers with a window, and then one without.
func exaone4Defaults(c *Config, keys map[string]json.RawMessage) error {
	unsaid(keys, "rms_norm_eps", &c.RMSNormEps, 1e-5)
	unsaid(keys, "num_key_value_heads", &c.NumKVHeads, 32)
	unsaid(keys, "sliding_window", &c.SlidingWindow, 4096)
	if c.LayerTypes != nil || c.SlidingWindow == 0 {
		return nil
	}
	pattern := 4
	if raw, ok := keys["sliding_window_pattern"]; ok {
		if err := json.Unmarshal(raw, &pattern); err != nil || pattern < 1 {
			return fmt.Errorf("sliding_window_pattern is %s, want a number above 0, or layer_types", raw)
		}
	}
	c.alternate(pattern)
	return nil
}
