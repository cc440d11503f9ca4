package model

import "encoding/json"

// mistral, of Mistral 7B and some of Hermes, is Llama's block without biases, and with a sliding window in all layers
// if configured (Jiang et al. 2023).
var mistral = architecture{
	modelType: "mistral", class: "MistralForCausalLM", reads: []string{"sliding_window", "use_sliding_window"},
	windowed: true, defaults: mistralDefaults, describe: describeMistral,
}

func describeMistral(c *Config, check checker) *design {
	d := plain(c, check)
	for i := range d.layers {
		d.layers[i].window = c.SlidingWindow
	}
	return d
}

// mistralDefaults sets a window of 4096 where the key is absent; null is no window.
func mistralDefaults(c *Config, keys map[string]json.RawMessage) error {
	unsaid(keys, "sliding_window", &c.SlidingWindow, 4096)
	return zeroWindow(keys)
}
