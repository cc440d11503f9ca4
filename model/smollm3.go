package model

import (
	"encoding/json"
	"fmt"
)

// smolLM3, of SmolLM3, is Llama's block, in which every fourth layer, or those that are configured, has no rotary
// embeddings (Yang et al. 2025, https://arxiv.org/abs/2501.18795). Where windows are enabled, those layers have them.
var smolLM3 = architecture{
	modelType: "smollm3", class: "SmolLM3ForCausalLM",
	reads: []string{"attention_bias", "mlp_bias", "sliding_window", "use_sliding_window", "no_rope_layers",
		"no_rope_layer_interval"},
	defaults: smolLM3Defaults, describe: describeSmolLM3,
}

func describeSmolLM3(c *Config, check checker) *design {
	d := plain(c, check)
	d.qwenWindows(c, check)
	check(len(c.RopeLayers) == len(d.layers), "no_rope_layers has %d entries, num_hidden_layers is %d", len(c.RopeLayers),
		len(d.layers))
	for i, rotated := range c.RopeLayers[:min(len(c.RopeLayers), len(d.layers))] {
		check(rotated == 0 || rotated == 1, "no_rope_layers: layer %d is %d, want 0, or 1 for rotary embeddings", i, rotated)
		if rotated == 0 {
			d.layers[i].rope = rope{}
		}
	}
	return d
}

func smolLM3Defaults(c *Config, keys map[string]json.RawMessage) error {
	unsaid(keys, "tie_word_embeddings", &c.TieEmbeddings, true)
	if c.RopeTheta == 0 && absent(keys["rope_theta"]) {
		c.RopeTheta = 2e6
	}
	every := 4
	if raw := keys["no_rope_layer_interval"]; !absent(raw) {
		if err := json.Unmarshal(raw, &every); err != nil || every < 1 {
			return fmt.Errorf("no_rope_layer_interval is %s, want a number above 0", raw)
		}
	}
	if absent(keys["no_rope_layers"]) {
		for i := range min(c.NumLayers, mostLayers) {
			c.RopeLayers = append(c.RopeLayers, min((i+1)%every, 1))
		}
	}
	if c.LayerTypes == nil && c.UseSlidingWindow && c.SlidingWindow != 0 {
		for _, rotated := range c.RopeLayers {
			c.LayerTypes = append(c.LayerTypes, map[bool]string{true: layerSliding, false: layerFull}[rotated == 0])
		}
	}
	return nil
}
