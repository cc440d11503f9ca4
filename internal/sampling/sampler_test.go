package sampling

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// draw lets the device draw one token for each row of logprobs.
func draw(
	t *testing.T, logprobs [][]float32, rows []Settings, seed uint64, index int,
) (ids []int32, sampled []float32) {
	t.Helper()
	w, v := len(rows), len(logprobs[0])
	var flat []float32
	var uniform []float64
	for i := range rows {
		flat, uniform = append(flat, logprobs[i]...), append(uniform, Uniform(seed+uint64(i), index))
	}
	temperature, topP, topK, cuts := Inputs(rows)
	out := graphtest.Run(t, graphtest.Complete(t), func(in []*graph.Node) []*graph.Node {
		s := Sampler{Uniform: in[1], Temperature: in[2], TopP: in[3], TopK: in[4], Cuts: cuts}
		ids, sampled := s.Draw(in[0])
		return []*graph.Node{ids, sampled}
	}, graphtest.Tensor(flat, w, v), graphtest.Tensor(uniform, w), graphtest.Tensor(temperature, w),
		graphtest.Tensor(topP, w), graphtest.Tensor(topK, w))
	return tensors.MustCopyFlatData[int32](out[0]), graphtest.Values[float32](t, out[1])
}

// TestSampler_LikeSample: tokens and logprobs of random distributions, with ties and impossible tokens, in vocabularies
// of one block and of several. Where brute force says that rounding decides, both may differ.
func TestSampler_LikeSample(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 60))
	compared := 0
	for round, v := range []int{1, 2, 30, 511, 512, 513, 1100} {
		for _, cuts := range []Cuts{{}, {TopP: true}, {TopK: true}, {TopP: true, TopK: true}} {
			var logprobs [][]float32
			var rows []Settings
			for range 16 {
				s := Settings{Temperature: []float64{0, 1, 0.7, 1e-5, 1e300, 1e-310}[rng.IntN(6)], TopP: 1}
				if cuts.TopP {
					s.TopP = []float64{1, 0.9, 0.5, 1e-9, 0}[rng.IntN(5)]
				}
				if cuts.TopK {
					s.TopK = []int{0, 1, 3, 100}[rng.IntN(4)]
				}
				logprobs, rows = append(logprobs, randomLogprobs(rng, v)), append(rows, s)
			}
			from := rng.Uint64()
			ids, sampled := draw(t, logprobs, rows, from, round)
			for i, s := range rows {
				if s.Temperature > 0 {
					if _, margin := reshaped(logprobs[i], s); margin < 1e-9 {
						continue
					}
				}
				compared++
				id, want := Sample(logprobs[i], s, from+uint64(i), round)
				require.Equal(t, id, ids[i], "%+v, vocabulary of %d, seed %d", s, v, seed)
				require.InDelta(t, want, sampled[i], 1e-6)
			}
		}
	}
	require.Greater(t, compared, 130, "most draws are not close")
}

// TestSampler_TiesAtTheEdge: of equal tokens top-k and top-p keep those with the smaller ids.
func TestSampler_TiesAtTheEdge(t *testing.T) {
	even := make([]float32, 1024)
	for i := range even {
		even[i] = -6.931472
	}
	settings := []Settings{{Temperature: 1, TopP: 1, TopK: 2}, {Temperature: 1, TopP: 0.5},
		{Temperature: 1, TopP: 0.4, TopK: 4}, {Temperature: 1, TopP: 0.9, TopK: 700}}
	for index := range 30 {
		ids, _ := draw(t, [][]float32{even, even, even, even}, settings, 3, index)
		for i, most := range []int32{2, 512, 2, 630} {
			require.Less(t, ids[i], most, "%+v", settings[i])
			id, _ := Sample(even, settings[i], 3+uint64(i), index)
			require.Equal(t, id, ids[i])
		}
	}
}
