package model

import (
	"encoding/json"
	"fmt"
	"slices"
)

// qwen2, of Qwen2, Qwen2.5 and the DeepSeek-R1 distills based on them, is Llama's block with biases of queries, keys
// and values (Yang et al. 2024). Its layers from max_window_layers on have a window when use_sliding_window is set,
// which no published model does.
var qwen2 = architecture{
	modelType: "qwen2", class: "Qwen2ForCausalLM",
	reads: append(slices.Clone(qwenReads), // it has biases without being asked
		"attention_bias", "qkv_bias", "use_qkv_bias", "add_qkv_bias", "attention_qkv_bias"),
	defaults: qwenDefaults, describe: describeQwen2,
}

var qwenReads = []string{"sliding_window", "use_sliding_window"}

func describeQwen2(c *Config, check checker) *design {
	d := plain(c, check)
	for i := range d.layers {
		l := &d.layers[i]
		l.q.bias, l.k.bias, l.v.bias, l.out.bias = true, true, true, false
	}
	d.qwenWindows(c, check)
	return d
}

// qwen25VL is the text model of Qwen2.5-VL: qwen2, which has other defaults there.
var qwen25VL = architecture{
	modelType: "qwen2_5_vl_text", reads: qwen2.reads, defaults: qwen25VLDefaults, describe: describeQwen2,
}

func qwen25VLDefaults(c *Config, keys map[string]json.RawMessage) error {
	unsaid(keys, "rms_norm_eps", &c.RMSNormEps, 1e-5)
	unsaid(keys, "num_key_value_heads", &c.NumKVHeads, 8)
	if c.RopeTheta == 0 && absent(keys["rope_theta"]) {
		c.RopeTheta = 1e6
	}
	return qwenDefaultsFrom(c, keys, 80)
}

func (d *design) qwenWindows(c *Config, check checker) {
	if c.UseSlidingWindow {
		d.slide(c, check)
		return
	}
	off := *c
	off.SlidingWindow = 0
	d.slide(&off, check)
}

// qwenWindow sets a window of 4096 where windows are enabled and the key is absent.
func qwenWindow(c *Config, keys map[string]json.RawMessage) error {
	if !c.UseSlidingWindow {
		return nil
	}
	unsaid(keys, "sliding_window", &c.SlidingWindow, 4096)
	return zeroWindow(keys)
}

func qwenDefaults(c *Config, keys map[string]json.RawMessage) error {
	return qwenDefaultsFrom(c, keys, 28)
}

// qwenDefaultsFrom sets the window, and the types of layers where they are absent and windows are enabled. first is the
// default of max_window_layers.
func qwenDefaultsFrom(c *Config, keys map[string]json.RawMessage, first int) error {
	err := qwenWindow(c, keys)
	if err != nil || !c.UseSlidingWindow || c.LayerTypes != nil || c.NumLayers < 1 || c.NumLayers > mostLayers {
		return err
	}
	if raw, ok := keys["max_window_layers"]; ok {
		if err := json.Unmarshal(raw, &first); err != nil {
			return fmt.Errorf("max_window_layers: %w", err)
		}
	}
	for i := range c.NumLayers {
		kind := layerFull
		if i >= first && c.SlidingWindow != 0 {
			kind = layerSliding
		}
		c.LayerTypes = append(c.LayerTypes, kind)
	}
	return nil
}
