package model

import "encoding/json"

// ModelTypeMistral is that of Mistral 7B, and of some of Hermes.
const ModelTypeMistral = "mistral"

// mistral is Llama's block without biases, and with a window in all layers if the configuration has one (Jiang et al.
// 2023).
var mistral = architecture{modelType: ModelTypeMistral, class: "MistralForCausalLM", defaults: mistralDefaults, describe: describeMistral}

func describeMistral(c *Config, check checker) *design {
	d := plain(c, check)
	for i := range d.layers {
		d.layers[i].window = c.SlidingWindow
	}
	return d
}

// mistralDefaults: a file without the key has a window of 4096; one that says null has none.
func mistralDefaults(c *Config, keys map[string]json.RawMessage) error {
	if _, ok := keys["sliding_window"]; !ok {
		c.SlidingWindow = 4096
	}
	return nil
}
