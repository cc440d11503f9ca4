package trainer

import (
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/dev/fixtures"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/pack"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// smallQwen is the shape of Qwen3-0.6B with four layers and a smaller vocabulary.
func smallQwen() *model.Config {
	return &model.Config{
		ModelType: "qwen3", HiddenAct: "silu", VocabSize: 30000, HiddenSize: 1024, IntermediateSize: 3072,
		NumLayers: 4, NumHeads: 16, NumKVHeads: 8, HeadDim: 128, MaxPositions: 40960, RMSNormEps: 1e-6, RopeTheta: 1e6,
		TieEmbeddings: true,
	}
}

func linears(c *model.Config) (layers []lora.LayerShape) {
	for _, l := range c.Linears() {
		layers = append(layers, lora.LayerShape(l))
	}
	return layers
}

// params are the weights of a model without their values.
func params(c *model.Config) *model.Params {
	p, _ := c.Outline()
	return p
}

// estimate is what a training of adapters of a layout, nil for all weights, takes by its sizes alone.
func estimate(c *model.Config, layout *lora.Adapter, opts Options, length int) plan.Memory {
	target := FullTarget(c)
	if layout != nil {
		target = AdapterTarget(c, params(c), layout)
	}
	t := New(target, opts)
	return t.plan.Memory(t.sizes, length)
}

// TestEstimate_BoundsPlan: the estimate is what the compiled graph takes, or more.
func TestEstimate_BoundsPlan(t *testing.T) {
	configs := map[string]*model.Config{"small Qwen": smallQwen()}
	for _, m := range fixtures.Models(t) {
		c, err := model.LoadConfig(m.Dir)
		require.NoError(t, err)
		configs[m.Name] = c
	}
	for name, c := range configs {
		layout, err := lora.New(lora.Config{}, linears(c), 0)
		require.NoError(t, err)
		for _, length := range []int{64, 256, 1024} {
			for _, s := range []plan.Sizes{{Workers: 2}, {Workers: 2, Recompute: true}} {
				length = min(length, c.MaxPositions)
				opts := Options{Device: graphtest.CPU(t), Workers: s.Workers, Recompute: s.Recompute}
				planned, err := Plan(c, layout, length, opts)
				require.NoError(t, err)
				m := estimate(c, layout, opts, length)
				require.Equal(t, planned.Adapter, m.Adapter)
				require.Equal(t, planned.Programs, m.Programs)
				require.NotZero(t, planned.Work)
				require.GreaterOrEqual(t, m.Work, planned.Work, "%s %d %+v", name, length, s)
				t.Logf("%s %d %+v: estimated %.2f of the plan's %.1f MB", name, length, s, m.Work/planned.Work,
					planned.Work/1e6)
			}
		}
	}
}

// TestPlan_Entropy: a loss with an entropy bonus takes no more than others, though the entropy of a token has
// all logprobs.
func TestPlan_Entropy(t *testing.T) {
	c := smallQwen()
	layout, err := lora.New(lora.Config{}, linears(c), 0)
	require.NoError(t, err)
	opts := Options{Device: graphtest.CPU(t), Workers: 1}
	tr := New(AdapterTarget(c, params(c), layout), opts)
	loss := grpo.Penalized{Loss: grpo.PolicyLoss{}, Entropy: 0.01}
	require.True(t, loss.Spec().Entropy)
	_, in := c.Outline()
	for _, p := range layout.Params() {
		in = append(in, shapes.Make(dtypes.Float32, p.Shape...))
	}
	rows := pack.Layout{Rows: tr.Sizes().Rows(256), Length: 256, Trained: tr.Sizes().Rows(256) * 256}
	work := func(l grpo.Loss) float64 {
		bytes, err := graphx.WorkOfGraph(opts.Device, tr.lossGraph(l, true, false).build,
			slices.Concat(in, inputShapes(rows)))
		require.NoError(t, err)
		return float64(bytes)
	}
	plain := work(grpo.PolicyLoss{})
	require.Less(t, work(loss)-plain, 0.05*float64(rows.Tokens()*c.VocabSize*4))
}

// TestPlan_GrowsAsTokens: what a sequence takes grows as its tokens do, though its attention scores are their square.
func TestPlan_GrowsAsTokens(t *testing.T) {
	c := smallQwen()
	layout, err := lora.New(lora.Config{}, linears(c), 0)
	require.NoError(t, err)
	for _, recompute := range []bool{false, true} {
		work := func(length int) float64 {
			planned, err := Plan(c, layout, length, Options{
				Device: graphtest.CPU(t), Workers: 1, MicroTokens: 512, Recompute: recompute, Alone: true,
			})
			require.NoError(t, err)
			return planned.Work
		}
		require.Less(t, work(4096), 4.5*work(1024), "recompute %v", recompute)
	}
}

// TestEstimate_BoundsFullPlan: the same of a training of all weights.
func TestEstimate_BoundsFullPlan(t *testing.T) {
	c := smallQwen()
	for _, s := range []plan.Sizes{{Workers: 1, MicroTokens: 512}, {Workers: 1, MicroTokens: 512, Recompute: true}} {
		opts := Options{Device: graphtest.CPU(t), Workers: s.Workers, MicroTokens: s.MicroTokens, Recompute: s.Recompute}
		planned, err := Plan(c, nil, 256, opts)
		require.NoError(t, err)
		_, in := c.Outline()
		weights := int64(0)
		for _, x := range in {
			weights += x.ByteSize()
		}
		require.Equal(t, 13*float64(weights), planned.Adapter)
		m := estimate(c, nil, opts, 256)
		require.GreaterOrEqual(t, m.Work, planned.Work, "%+v", s)
		require.Equal(t, planned.Programs, m.Programs)
		t.Logf("%+v: estimated %.2f of the plan's %.1f MB", s, m.Work/planned.Work, planned.Work/1e6)
	}
}

// TestEstimate_Parts: what is estimated bounds what is planned for an adapter with DoRA and for one of the head, and is
// what Fit counts, also where sequences are padded more.
func TestEstimate_Parts(t *testing.T) {
	c := smallQwen()
	layers := linears(c)
	for _, l := range c.Adaptable() {
		if l.Name == "lm_head" {
			layers = append(layers, lora.LayerShape(l))
		}
	}
	opts := Options{Device: graphtest.CPU(t), Workers: 1, MicroTokens: 512}
	for _, cfg := range []lora.Config{{}, {DoRA: true}, {Targets: []string{"q_proj", "lm_head"}}} {
		layout, err := lora.New(cfg, layers, 0)
		require.NoError(t, err)
		planned, err := Plan(c, layout, 256, opts)
		require.NoError(t, err)
		m := estimate(c, layout, opts, 256)
		require.Equal(t, planned.Adapter, m.Adapter, "%+v", cfg)
		require.Equal(t, planned.Programs, m.Programs)
		require.GreaterOrEqual(t, m.Work, planned.Work, "%+v", cfg)
	}

	layout, err := lora.New(lora.Config{}, linears(c), 0)
	require.NoError(t, err)
	opts = Options{Device: graphtest.NamedOn(graphtest.CPU(t), "xla:cuda"), FewShapes: true}
	takes, ok := New(AdapterTarget(c, params(c), layout), opts).Fit(300, 1e12)
	require.True(t, ok)
	m := estimate(c, layout, opts, 300)
	require.InDelta(t, takes, m.Adapter+m.Work+float64(plan.TrainingPrograms(c)), 2, "a micro-batch at a time")
}
