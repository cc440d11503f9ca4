package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/dev/fixtures"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// smallQwen is Qwen3-0.6B with fewer layers and a smaller vocabulary.
func smallQwen() *model.Config {
	return &model.Config{
		ModelType: "qwen3", HiddenAct: "silu", VocabSize: 30000, HiddenSize: 1024, IntermediateSize: 3072,
		NumLayers: 4, NumHeads: 16, NumKVHeads: 8, HeadDim: 128, MaxPositions: 40960, RMSNormEps: 1e-6,
		RopeTheta: 1e6, TieEmbeddings: true,
	}
}

// TestEstimate_BoundsPlan: the estimate is an upper bound of what the compiled graphs take.
func TestEstimate_BoundsPlan(t *testing.T) {
	configs := map[string]*model.Config{"small Qwen": smallQwen()}
	for _, m := range fixtures.Models(t) {
		c, err := model.LoadConfig(m.Dir)
		require.NoError(t, err)
		configs[m.Name] = c
	}
	for name, c := range configs {
		var layers []lora.LayerShape
		for _, l := range c.Linears() {
			layers = append(layers, lora.LayerShape(l))
		}
		layout, err := lora.New(lora.Config{}, layers, 0)
		require.NoError(t, err)
		for _, size := range [][2]int{{32, 256}, {1, 256}, {8, 4096}, {1, 40960}} {
			opts := Options{Device: graphtest.CPU(t), Config: c, Slots: size[0], Context: min(size[1], c.MaxPositions)}
			planned, err := Plan(opts, layout)
			require.NoError(t, err)
			m := opts.withDefaults().sampling().Memory()
			layer := cacheShape(opts.withDefaults()).ByteSize()
			require.Equal(t, float64(2*c.NumLayers)*float64(layer), m.Cache, "%s %v", name, size)
			require.GreaterOrEqual(t, m.Work, planned.Work, "%s %v", name, size)
			require.NotZero(t, planned.Work)
			t.Logf("%s %v: estimated %.2f of the plan's %.1f MB", name, size, m.Work/planned.Work, planned.Work/1e6)
		}
	}
}

// TestEstimate_BoundsPrograms: no compiled graph takes more than what the plan has for each, of any architecture.
func TestEstimate_BoundsPrograms(t *testing.T) {
	device := graphtest.Device(t)
	if !graphx.ProfileOf(device).FusedAttention {
		t.Skip("another device does not say what a program takes")
	}
	for _, m := range fixtures.Models(t) {
		w, err := model.Open(m.Dir)
		require.NoError(t, err)
		params, err := w.Params(device)
		require.NoError(t, err)
		e, err := New(Options{
			Device: device, Config: w.Config, Params: params, Slots: 4, Context: min(600, w.Config.MaxPositions),
		})
		require.NoError(t, err)
		most, before := 0.0, int64(0)
		for _, p := range Programs(e.opts) {
			require.NoError(t, e.do(t.Context(), func(l *loop) error { return l.runner.warm(nil, p) }))
			now := e.runner.programs.Bytes()
			most, before = max(most, float64(now-before)), now
		}
		e.Close()
		shapes := e.runner.shapes
		each := e.opts.sampling().Memory().Programs / 2 / float64(len(shapes.Rounds)*len(shapes.Windows))
		t.Logf("%s: %.0f of %.0f kB", m.Name, most/1e3, each/1e3)
		require.LessOrEqual(t, most, each, m.Name)
	}
}
