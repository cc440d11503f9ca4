package model

import (
	"encoding/json"
	"slices"
)

// graniteHybrid, of Granite 4's models without state-space layers and experts, is granite with the two projections of
// the MLP's gate in one matrix, and in some models without rotary embeddings (Granite Team 2025).
var graniteHybrid = architecture{
	modelType: "granitemoehybrid", class: "GraniteMoeHybridForCausalLM",
	// The sizes of state-space layers are in every file.
	reads: append([]string{"attention_bias", "position_embedding_type", "shared_intermediate_size", "layers_block_type",
		"mamba_n_heads", "mamba_n_groups", "mamba_d_state", "mamba_d_head", "mamba_d_conv", "mamba_expand",
		"mamba_chunk_size", "mamba_conv_bias", "mamba_proj_bias"}, graniteReads...),
	defaults: graniteHybridDefaults, describe: describeGraniteHybrid,
}

func describeGraniteHybrid(c *Config, check checker) *design {
	d := describeGranite(c, check)
	check(c.PositionEmbedding == "rope" || c.PositionEmbedding == "" || c.PositionEmbedding == "nope",
		"position_embedding_type is %q, want rope, or null for none", c.PositionEmbedding)
	check(c.SharedIntermediateSize > 0 && c.SharedIntermediateSize <= mostSize,
		"shared_intermediate_size is %d, want 1 to %d", c.SharedIntermediateSize, mostSize)
	check(c.LayerTypes != nil, "layer_types is absent, which makes all layers mamba: not supported")
	for i := range d.layers {
		l := &d.layers[i]
		l.feed = c.mlp().fused("shared_mlp.input_linear", "shared_mlp.output_linear", c.SharedIntermediateSize)
		if c.PositionEmbedding != "rope" {
			l.rope = rope{}
		}
	}
	return d
}

func graniteHybridDefaults(c *Config, keys map[string]json.RawMessage) error {
	unsaid(keys, "intermediate_size", &c.IntermediateSize, 11008)
	unsaid(keys, "shared_intermediate_size", &c.SharedIntermediateSize, 1024)
	if absent(keys["num_local_experts"]) && absent(keys["num_experts"]) {
		c.NumExperts = 8
	}
	if c.NumExperts == 0 { // without the key there would be experts
		c.extra = map[string]json.RawMessage{"num_local_experts": json.RawMessage("0")}
	}
	if raw := keys["layers_block_type"]; c.LayerTypes == nil && !absent(raw) {
		if err := json.Unmarshal(raw, &c.LayerTypes); err != nil {
			return err
		}
	}
	c.LayerTypes = slices.Clone(c.LayerTypes)
	for i, kind := range c.LayerTypes {
		if kind == "attention" { // the older name
			c.LayerTypes[i] = layerFull
		}
	}
	return graniteDefaults(c, keys)
}
