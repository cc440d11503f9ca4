package model

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// qwenGolden is what testdata/qwen3/golden.py writes: what transformers' Qwen3ForCausalLM computes in float64 (norms,
// rotations and softmax in float32, as it always does) with the checkpoints beside it, which it saved in bfloat16.
type qwenGolden struct {
	IDs       [][]int32          `json:"ids"`        // [2, 12]
	Logprobs  [][][]float64      `json:"logprobs"`   // [2, 12, V]
	Loss      float64            `json:"loss"`       // mean of -logprob of all tokens but the first of a row
	GradNorms map[string]float64 `json:"grad_norms"` // of loss, for each weight
}

func readGolden(t *testing.T) map[string]qwenGolden {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "qwen3", "golden.json"))
	require.NoError(t, err)
	var golden map[string]qwenGolden
	require.NoError(t, json.Unmarshal(data, &golden))
	require.Len(t, golden, 2)
	return golden
}

// flat returns the ids of all rows.
func (g *qwenGolden) flat() (ids []int32) {
	for _, row := range g.IDs {
		ids = append(ids, row...)
	}
	return ids
}

// TestForward_MatchesTransformers: 4 query heads share 2 of keys and values, and heads of 16 do not add up to the
// hidden 32. Made with transformers 4.57.1 and torch 2.5.1 on a CPU: python3 testdata/qwen3/golden.py.
func TestForward_MatchesTransformers(t *testing.T) {
	for name, g := range readGolden(t) {
		t.Run(name, func(t *testing.T) {
			w, err := Load(filepath.Join("testdata", "qwen3", name))
			require.NoError(t, err)
			got := newForward(t, w, nil, nil).logprobs(t, g.flat(), 2)
			worst := 0.0
			for _, row := range g.Logprobs {
				for _, at := range row {
					for _, want := range at {
						worst = max(worst, math.Abs(want-float64(got[0])))
						got = got[1:]
					}
				}
			}
			require.Empty(t, got)
			t.Logf("largest difference %.2g", worst)
			require.Less(t, worst, 1e-5)
		})
	}
}

// TestForward_GradientMatchesTransformers compares the norm of the gradient of every weight, the embedding's from both
// of its uses included.
func TestForward_GradientMatchesTransformers(t *testing.T) {
	for name, g := range readGolden(t) {
		t.Run(name, func(t *testing.T) {
			w, err := Load(filepath.Join("testdata", "qwen3", name))
			require.NoError(t, err)
			l := newLossOf(t, w.Config, g.flat(), 2)
			loss, grads := l.gradient(t, w)
			require.InDelta(t, g.Loss, loss, 1e-5)
			require.Len(t, grads, len(g.GradNorms))
			for i, x := range w.Tensors {
				sum := 0.0
				for _, v := range grads[i] {
					sum += float64(v) * float64(v)
				}
				require.InEpsilon(t, g.GradNorms[x.Name], math.Sqrt(sum), 1e-4, x.Name)
			}
		})
	}
}
