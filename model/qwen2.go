package model

import (
	"encoding/json"
	"fmt"
)

// ModelTypeQwen2 is that of Qwen2 and Qwen2.5, and of the DeepSeek-R1 distills that begin with them.
const ModelTypeQwen2 = "qwen2"

// qwen2 is Llama's block with biases at queries, keys and values (Yang et al. 2024). Its layers from max_window_layers on have
// a window when use_sliding_window is set, which no published model does.
var qwen2 = architecture{modelType: ModelTypeQwen2, class: "Qwen2ForCausalLM", defaults: qwenDefaults, describe: describeQwen2}

func describeQwen2(c *Config, check checker) *design {
	d := plain(c, check)
	d.qkvBias = true
	d.qwenWindows(c, check)
	return d
}

// qwenWindows gives the layers their windows, where they are switched on.
func (d *design) qwenWindows(c *Config, check checker) {
	if c.UseSlidingWindow {
		d.slide(c, check)
		return
	}
	off := *c
	off.SlidingWindow = 0
	d.slide(&off, check)
}

// qwenDefaults sets the types of layers, where there are none and windows are switched on.
func qwenDefaults(c *Config, keys map[string]json.RawMessage) error {
	if !c.UseSlidingWindow || c.LayerTypes != nil || c.NumLayers < 1 || c.NumLayers > mostLayers {
		return nil
	}
	first := 28
	if raw, ok := keys["max_window_layers"]; ok {
		if err := json.Unmarshal(raw, &first); err != nil {
			return fmt.Errorf("max_window_layers: %w", err)
		}
	}
	for i := range c.NumLayers {
		kind := LayerFull
		if i >= first {
			kind = LayerSliding
		}
		c.LayerTypes = append(c.LayerTypes, kind)
	}
	return nil
}
