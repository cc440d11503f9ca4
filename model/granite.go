package model

import "cmp"

// granite, of Granite's dense models from 3 on, is Llama's block with four multipliers: of the embedding, of attention
// scores instead of 1/sqrt(E), of what a layer adds to the residual stream, and of logits, which are divided by it
// (Granite Team 2024).
var granite = architecture{modelType: "granite", class: "GraniteForCausalLM", describe: describeGranite,
	reads: append([]string{"embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling"},
		llama.reads...)}

func describeGranite(c *Config, check checker) *design {
	d := describeLlama(c, check)
	for name, x := range map[string]float64{
		"embedding_multiplier": c.EmbeddingMultiplier, "attention_multiplier": c.AttentionMultiplier,
		"residual_multiplier": c.ResidualMultiplier, "logits_scaling": c.LogitsScaling,
	} {
		check(x == 0 || positive(x), "%s is %v, want a positive number", name, x)
	}
	d.embedScale = cmp.Or(c.EmbeddingMultiplier, 1)
	d.queryScale = cmp.Or(c.AttentionMultiplier, 1)
	d.residualScale = cmp.Or(c.ResidualMultiplier, 1)
	d.logitScale = 1 / cmp.Or(c.LogitsScaling, 1)
	return d
}
