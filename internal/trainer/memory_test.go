package trainer

import (
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/fixtures"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// smallQwen is the shape of Qwen3-0.6B with four layers and a smaller vocabulary.
func smallQwen() *model.Config {
	return &model.Config{
		ModelType: model.ModelTypeQwen3, HiddenAct: "silu", VocabSize: 30000, HiddenSize: 1024, IntermediateSize: 3072,
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
			for _, s := range []Sizes{{Workers: 2}, {Workers: 2, Recompute: true}} {
				length = min(length, c.MaxPositions)
				opts := Options{Device: graphtest.CPU(t), Workers: s.Workers, Recompute: s.Recompute}
				planned, err := Plan(c, layout, length, opts)
				require.NoError(t, err)
				adapter, work, programs := EstimateMemory(c, float64(layout.NumParams()), s, length, graphx.NamedProfile("cpu"))
				require.Equal(t, float64(planned.Adapter), adapter)
				require.Equal(t, float64(planned.Programs), programs)
				require.GreaterOrEqual(t, work, float64(planned.Work), "%s %d %+v", name, length, s)
				t.Logf("%s %d %+v: estimated %.2f of the plan's %.1f MB", name, length, s, work/float64(planned.Work),
					float64(planned.Work)/1e6)
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
	rows := fullLayout(256, tr.Sizes().MicroTokens)
	work := func(l grpo.Loss) float64 {
		bytes, err := graphx.WorkOfGraph(opts.Device, tr.lossGraph(l, true, false).build, slices.Concat(in, rows.Shapes()))
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
			return float64(planned.Work)
		}
		require.Less(t, work(4096), 4.5*work(1024), "recompute %v", recompute)
	}
}

// TestEstimate_BoundsFullPlan: the same of a training of all weights.
func TestEstimate_BoundsFullPlan(t *testing.T) {
	c := smallQwen()
	for _, s := range []Sizes{{Workers: 1, MicroTokens: 512}, {Workers: 1, MicroTokens: 512, Recompute: true}} {
		opts := Options{Device: graphtest.CPU(t), Workers: s.Workers, MicroTokens: s.MicroTokens, Recompute: s.Recompute}
		planned, err := PlanFull(c, 256, opts)
		require.NoError(t, err)
		require.Equal(t, fullCopies*4*numParams(c), float64(planned.Adapter))
		takes := EstimateFull(c, s, 256, graphx.NamedProfile("cpu"))
		require.GreaterOrEqual(t, takes, float64(planned.Adapter+planned.Work+planned.Programs), "%+v", s)
		work := takes - float64(planned.Adapter+planned.Programs)
		t.Logf("%+v: estimated %.2f of the plan's %.1f MB", s, work/float64(planned.Work), float64(planned.Work)/1e6)
	}
}

// TestEstimateOn: it is the estimate of the parts, which are those of Fit; it bounds what is planned for an adapter
// with DoRA and for one of the head; and a device that takes long to compile pads sequences.
func TestEstimateOn(t *testing.T) {
	c := smallQwen()
	cpu, gpu := graphx.NamedProfile("cpu"), graphx.NamedProfile("xla:cuda")
	layers := linears(c)
	for _, l := range c.Adaptable() {
		if l.Name == "lm_head" {
			layers = append(layers, lora.LayerShape(l))
		}
	}
	s := Sizes{Workers: 1, MicroTokens: 512}
	for _, cfg := range []lora.Config{{}, {DoRA: true}, {Targets: []string{"q_proj", "lm_head"}}} {
		layout, err := lora.New(cfg, layers, 0)
		require.NoError(t, err)
		planned, err := Plan(c, layout, 256, Options{Device: graphtest.CPU(t), Workers: 1, MicroTokens: 512})
		require.NoError(t, err)
		m := EstimateOn(c, layout, s, 256, cpu)
		require.Equal(t, planned.Adapter, m.Adapter, "%+v", cfg)
		require.Equal(t, planned.Programs, m.Programs)
		require.GreaterOrEqual(t, m.Work, planned.Work, "%+v", cfg)
		require.Equal(t, EstimateOn(c, layout, s, 512, gpu), EstimateOn(c, layout, s, 300, gpu))
		require.Less(t, EstimateOn(c, layout, s, 300, cpu).Work, EstimateOn(c, layout, s, 512, cpu).Work)
	}
	full := EstimateOn(c, nil, s, 256, cpu)
	require.InEpsilon(t, EstimateFull(c, s, 256, cpu), float64(full.Adapter+full.Work+full.Programs), 1e-6)
	require.Less(t, EstimateOn(c, nil, s, 256, gpu).Adapter, full.Adapter)

	layout, err := lora.New(lora.Config{}, linears(c), 0)
	require.NoError(t, err)
	opts := Options{Device: graphtest.NamedOn(graphtest.CPU(t), "xla:cuda"), FewShapes: true}
	takes, ok := New(AdapterTarget(c, params(c), layout), opts).Fit(300, 1e12)
	require.True(t, ok)
	m := EstimateOn(c, layout, Sizes{}, 300, gpu)
	require.InDelta(t, takes, float64(m.Adapter+m.Work+programBytes(c)), 2, "a micro-batch at a time")
}
