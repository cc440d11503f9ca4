package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// TestPlan_FromFewLayers: what is told from the graphs of three and four layers is what that of all takes.
func TestPlan_FromFewLayers(t *testing.T) {
	mixture := smallQwen()
	mixture.ModelType, mixture.NumExperts, mixture.ExpertsPerToken = "qwen3_moe", 6, 2
	mixture.MoEIntermediateSize = 256
	for _, c := range []*model.Config{smallQwen(), mixture} {
		c.NumLayers = 8
		var layers []lora.LayerShape
		for _, l := range c.Adaptable() {
			layers = append(layers, lora.LayerShape(l))
		}
		targets := []string{"q_proj", "o_proj", "lm_head", "embed_tokens"}
		layout, err := lora.New(lora.Config{Targets: targets}, layers, 0)
		require.NoError(t, err)
		opts := Options{Device: graphtest.CPU(t), Config: c, Slots: 8, Context: 512}
		planned, err := Plan(opts, layout)
		require.NoError(t, err)
		whole, err := planWork(opts.withDefaults(), layout)
		require.NoError(t, err)
		require.Equal(t, float64(whole), planned.Work, c.ModelType)
	}
}
