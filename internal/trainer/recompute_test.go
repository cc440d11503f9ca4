package trainer

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/dev/fixtures"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/lora"
)

// TestRecompute_SameBits: layers that are computed again have the gradients, bit for bit, of a pass that keeps all: of
// every architecture, of adapters and of all weights, for branches on shared beginnings and sequences alone.
func TestRecompute_SameBits(t *testing.T) {
	for _, m := range fixtures.Models(t) {
		for _, s := range fixtureSubjects(t, m.Dir) {
			for _, alone := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/alone=%v", m.Name, s.name, alone), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(seed, 300))
					batch := s.scored(t, randomTree(rng, 4, 64, 40), func() float32 { return float32(rng.NormFloat64()) * 0.1 })
					run := Run{Loss: grpo.PolicyLoss{}}
					want, metrics := gradientOf(t, &s, Options{Alone: alone}, batch, run)
					got, again := gradientOf(t, &s, Options{Alone: alone, Recompute: true}, batch, run)
					sameBits(t, want, got, "recomputed")
					sameMetrics(t, metrics, again)
					_, length := distance(want, want)
					require.Greater(t, length, 1e-4)
				})
			}
		}
	}
}

// TestRecompute_TakesLess: of the memory of a micro-batch, recomputation of a model of four layers leaves half at most,
// and of one with more layers little more.
func TestRecompute_TakesLess(t *testing.T) {
	c := smallQwen()
	for layers, most := range map[int]float64{4: 0.5, 12: 0.25} {
		c.NumLayers = layers
		layout, err := lora.New(lora.Config{}, linears(c), 0)
		require.NoError(t, err)
		opts := Options{Device: graphtest.CPU(t), Workers: 1, MicroTokens: 1024}
		kept, err := Plan(c, layout, 512, opts)
		require.NoError(t, err)
		opts.Recompute = true
		again, err := Plan(c, layout, 512, opts)
		require.NoError(t, err)
		t.Logf("%d layers: %.1f MB, recomputed %.1f MB", layers, float64(kept.Work)/1e6, float64(again.Work)/1e6)
		require.Less(t, float64(again.Work), most*float64(kept.Work))
	}
}
