package trainer

import (
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/pack"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// smallMixture has the blocks of Qwen3-30B-A3B, with fewer and smaller experts.
func smallMixture(layers int) *model.Config {
	c := smallQwen()
	c.ModelType, c.NumExperts, c.ExpertsPerToken, c.MoEIntermediateSize = "qwen3_moe", 6, 2, 256
	c.NumLayers, c.VocabSize, c.NormTopKProb = layers, 2000, true
	return c
}

// TestPlan_FromFewLayers: what is told from the graphs of three and four layers is what the graph of all takes, byte by
// byte. That of 48 layers of 128 experts took minutes to compile.
func TestPlan_FromFewLayers(t *testing.T) {
	qwen, full := smallQwen(), smallQwen()
	qwen.NumLayers, full.NumLayers, full.VocabSize = 9, 6, 3000
	for name, c := range map[string]*model.Config{"dense": qwen, "experts": smallMixture(7), "all weights": full} {
		for _, recompute := range []bool{false, true} {
			layout, err := lora.New(lora.Config{DoRA: c.NumLayers == 9}, linears(c), 0)
			require.NoError(t, err)
			opts := Options{Device: graphtest.CPU(t), Workers: 2, Recompute: recompute}
			of := func(c *model.Config) (Target, []shapes.Shape) {
				_, in := c.Outline()
				if name == "all weights" {
					return FullTarget(c), in
				}
				part := layout.Of(c.HasBlock)
				for _, p := range part.Params() {
					in = append(in, shapes.Make(in[0].DType, p.Shape...))
				}
				return AdapterTarget(c, params(c), part), append(in, part.NormShapes()...)
			}
			target, in := of(c)
			trainer := New(target, opts)
			work, err := trainer.planWork(256, of)
			require.NoError(t, err)

			build := trainer.lossGraph(grpo.PolicyLoss{}, true, recompute).build
			layouts := 0
			want, err := trainer.sizes.Work(256, false, func(l pack.Layout, _ int) (float64, error) {
				layouts++
				whole, err := graphx.WorkOfGraph(opts.Device, build, append(in[:len(in):len(in)], inputShapes(l)...))
				return float64(whole) + 4*trainer.plan.Params, err
			})
			require.NoError(t, err)
			require.Equal(t, 2, layouts)
			require.Equal(t, want, work, "%s, recompute %v", name, recompute)
		}
	}
}
