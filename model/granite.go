package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// granite, of Granite's dense models from 3 on, is Llama's block with four multipliers: of the embedding, of attention
// scores instead of 1/sqrt(E), of what a layer adds to the residual stream, and of logits, which are divided by it
// (Granite Team 2024).
var granite = architecture{modelType: "granite", class: "GraniteForCausalLM", describe: describeGranite,
	defaults: graniteDefaults, reads: slices.Concat(llama.reads, graniteReads)}

var graniteReads = []string{"embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling"}

// graniteDefaults refuses a file that has 0, which stands for 1 in a [Config]: transformers computes with it.
func graniteDefaults(_ *Config, keys map[string]json.RawMessage) error {
	for _, key := range graniteReads {
		x := 1.0
		if raw := keys[key]; !absent(raw) && json.Unmarshal(raw, &x) == nil && x == 0 {
			return fmt.Errorf("%s is %s, want a positive number", key, raw)
		}
	}
	return nil
}

func describeGranite(c *Config, check checker) *design {
	d := plain(c, check)
	for name, x := range map[string]float64{
		"embedding_multiplier": c.EmbeddingMultiplier, "attention_multiplier": c.AttentionMultiplier,
		"residual_multiplier": c.ResidualMultiplier, "logits_scaling": c.LogitsScaling,
	} {
		check(x == 0 || positive(x), "%s is %v, want a positive number", name, x)
	}
	d.embedding.scale = cmp.Or(c.EmbeddingMultiplier, 1)
	d.head.scale = 1 / cmp.Or(c.LogitsScaling, 1)
	for i := range d.layers {
		l := &d.layers[i]
		l.scale = cmp.Or(c.AttentionMultiplier, 1)
		l.mixing.scale = cmp.Or(c.ResidualMultiplier, 1)
		l.feeding.scale = l.mixing.scale
	}
	return d
}
