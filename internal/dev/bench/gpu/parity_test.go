package main

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	nan      = math.NaN()
	infinity = math.Inf(1)
)

// TestComparison_NotFinite: a figure that is not finite is no agreement, and is still written as JSON.
func TestComparison_NotFinite(t *testing.T) {
	for _, weights := range []string{"float32", "bfloat16"} {
		good := comparison{Weights: weights, Replies: 2, EqualIDs: 2, Loop: 2, Gap: 1e-6, Logprob: 1e-6, Gradient: 1e-6}
		require.True(t, good.agrees())
		for _, bad := range []figure{figure(nan), figure(infinity)} {
			for name, set := range map[string]func(*comparison){
				"gap_max":      func(c *comparison) { c.Gap = bad },
				"logprob_max":  func(c *comparison) { c.Logprob = bad },
				"gradient_max": func(c *comparison) { c.Gradient = bad },
			} {
				c := good
				set(&c)
				require.False(t, c.agrees(), "%s is %v", name, bad)
				line, err := json.Marshal(c)
				require.NoError(t, err)
				var got map[string]any
				require.NoError(t, json.Unmarshal(line, &got))
				require.Equal(t, map[bool]string{true: "NaN", false: "+Inf"}[math.IsNaN(float64(bad))], got[name])
				var back comparison
				require.NoError(t, json.Unmarshal(line, &back))
				require.False(t, back.agrees(), "what was read again")
			}
		}
	}
}

// TestComparison_Cache: what a cache in bfloat16 rounds may be apart by more.
func TestComparison_Cache(t *testing.T) {
	for cache, gaps := range map[string][2]figure{"float32": {0.19, 0.21}, "bfloat16": {0.4, 0.51}} {
		c := comparison{Weights: "bfloat16", Cache: cache, Gap: gaps[0]}
		require.True(t, c.agrees(), cache)
		c.Gap = gaps[1]
		require.False(t, c.agrees(), cache)
	}
}

// TestApart_NotFinite: gradients with an element that is not finite do not agree, nor do a gradient and zeros.
func TestApart_NotFinite(t *testing.T) {
	require.InDelta(t, 0.2, float64(apart([]float32{3, 4}, []float32{3, 5})), 1e-9)
	require.Zero(t, apart([]float32{0, 0}, []float32{0, 0}))
	require.Equal(t, figure(infinity), apart([]float32{0, 0}, []float32{0, 1e-3}))
	for _, bad := range []float32{float32(nan), float32(infinity), float32(-infinity)} {
		for _, pair := range [][2][]float32{{{1, bad}, {1, 2}}, {{1, 2}, {1, bad}}, {{1, bad}, {1, bad}}} {
			most := max(0, apart(pair[0], pair[1]), 1e-6)
			require.False(t, most < 1, "%v: %v", pair, most)
		}
	}
}

// TestGapOf_NaN: a maximum that ignored a NaN does not hide it.
func TestGapOf_NaN(t *testing.T) {
	gap := func(most, mean float64) figure {
		return gapOf(map[string]float64{"loss/log_ratio_max": most, "loss/log_ratio_mean": mean})
	}
	require.Equal(t, figure(0.5), gap(0.5, 1))
	require.False(t, gap(1e-6, nan) < 1e-4)
	require.False(t, gap(infinity, infinity) < 1e-4)
}
