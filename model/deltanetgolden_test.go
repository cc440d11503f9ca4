package model

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// deltaGolden is a mixer of transformers with random weights; the file is a list of them.
type deltaGolden struct {
	Family     string
	KeyHeads   int `json:"key_heads"`
	ValueHeads int `json:"value_heads"`
	KeyDim     int `json:"key_dim"`
	ValueDim   int `json:"value_dim"`
	Kernel     int
	Eps        float64
	Parameters map[string][]float32
	X, Weights []float32
	Y, DX      []float64
	Norms      map[string]float64 // of the gradients of parameters
}

// TestDeltaNet_MatchesTransformers: outputs of 70 tokens and gradients of sum(output * weights) are those of the mixers
// of Qwen3.5 and Qwen3-Next. Made with transformers 5.24.0 and torch 2.15.0: python3 testdata/deltanet/golden.py.
func TestDeltaNet_MatchesTransformers(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "deltanet", "golden.json"))
	require.NoError(t, err)
	var list []deltaGolden
	require.NoError(t, json.Unmarshal(data, &list))
	require.Len(t, list, 8)
	for i, g := range list {
		t.Run(fmt.Sprint(g.Family, i), func(t *testing.T) {
			require.Equal(t, deltaEps, g.Eps)
			net := deltaNet{
				keyHeads: g.KeyHeads, valueHeads: g.ValueHeads, keyDim: g.KeyDim, valueDim: g.ValueDim, kernel: g.Kernel,
				grouped: g.Family == "qwen3_next",
			}
			tokens := 70
			c := newDeltaCase(rand.New(rand.NewPCG(seed, 304)), net, len(g.X)/tokens)
			require.Len(t, g.Parameters, len(c.names))
			for name, x := range g.Parameters {
				require.Len(t, x, len(c.data[name]), name)
				c.data[name] = x
			}
			y, gradients := c.train(t, g.X, g.Weights, []int32{int32(tokens)})
			closeTo(t, g.Y, y, 5e-6, "output")
			closeTo(t, g.DX, gradients[0], 2e-5, "gradient of x")
			for k, name := range c.names {
				sum := 0.0
				for _, x := range gradients[1+k] {
					sum += float64(x) * float64(x)
				}
				require.InEpsilon(t, g.Norms[name], math.Sqrt(sum), 1e-4, name)
			}
		})
	}
}
