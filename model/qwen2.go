package model

import (
	"encoding/json"
	"fmt"
)

// ModelTypeQwen2 is that of Qwen2 and Qwen2.5, and of the DeepSeek-R1 distills that begin with them.
const ModelTypeQwen2 = "qwen2"

// qwen2 is Llama's block with biases at queries, keys and values (Yang et al. 2024). Its layers from max_window_layers
// on have a window when use_sliding_window is set, which no published model does.
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

// qwenWindow: a file without the key, and with windows switched on, has those of 4096.
func qwenWindow(c *Config, keys map[string]json.RawMessage) {
	if _, ok := keys["sliding_window"]; !ok && c.UseSlidingWindow {
		c.SlidingWindow = 4096
	}
}

// qwenDefaults sets the window, and the types of layers, where there are none and windows are switched on.
func qwenDefaults(c *Config, keys map[string]json.RawMessage) error {
	qwenWindow(c, keys)
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
		if i >= first && c.SlidingWindow != 0 {
			kind = LayerSliding
		}
		c.LayerTypes = append(c.LayerTypes, kind)
	}
	return nil
}
