package model

import "encoding/json"

// seedOSS, of Seed-OSS, is Llama's block with biases of queries, keys and values, and of the output of attention and
// the MLP if configured (ByteDance Seed Team 2025).
var seedOSS = architecture{
	modelType: "seed_oss", class: "SeedOssForCausalLM",
	reads:    []string{"attention_bias", "attention_out_bias", "mlp_bias"},
	defaults: seedOSSDefaults, describe: describeSeedOSS,
}

func describeSeedOSS(c *Config, check checker) *design {
	d := plain(c, check)
	for i := range d.layers {
		d.layers[i].out.bias = c.AttentionOutBias
	}
	return d
}

func seedOSSDefaults(c *Config, keys map[string]json.RawMessage) error {
	unsaid(keys, "attention_bias", &c.AttentionBias, true)
	unsaid(keys, "head_dim", &c.HeadDim, 128)
	unsaid(keys, "num_key_value_heads", &c.NumKVHeads, 8)
	return nil
}
