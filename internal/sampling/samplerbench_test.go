package sampling

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// BenchmarkSampler draws a token for each row, from the whole distribution and from a part of it. What a sampler
// that sorts would have to do first is there to compare: all tokens by logprob, or the largest 1,024.
//
//	ART_TEST_DEVICE=xla:cpu go test ./internal/sampling -run '^$' -bench Sampler
func BenchmarkSampler(b *testing.B) {
	draw := func(cuts Cuts) func(in []*graph.Node) []*graph.Node {
		return func(in []*graph.Node) []*graph.Node {
			ids, _ := Sampler{Uniform: in[1], Temperature: in[2], TopP: in[3], TopK: in[4], Cuts: cuts}.Draw(in[0])
			return []*graph.Node{ids}
		}
	}
	sorted := func(n int) func(in []*graph.Node) []*graph.Node {
		return func(in []*graph.Node) []*graph.Node { return []*graph.Node{byLogprob(in[0], n)} }
	}
	for _, v := range []int{512, 32768, 151936} {
		for _, w := range []int{1, 16} {
			inputs := drawInputs(w, v)
			for _, m := range []struct {
				name  string
				build func(in []*graph.Node) []*graph.Node
			}{
				{"whole", draw(Cuts{})}, {"top-p", draw(Cuts{TopP: true})}, {"top-k", draw(Cuts{TopK: true})},
				{"sort", sorted(v)}, {"largest", sorted(min(v, 1024))},
			} {
				b.Run(fmt.Sprintf("vocabulary=%d/rows=%d/%s", v, w, m.name), func(b *testing.B) {
					exec, err := graph.NewExec(graphtest.Complete(b), m.build)
					require.NoError(b, err)
					defer exec.Finalize()
					graphtest.Call(b, exec, inputs...)
					for b.Loop() {
						tensors.MustCopyFlatData[int32](graphtest.Call(b, exec, inputs...)[0])
					}
				})
			}
		}
	}
}

// drawInputs are those of a Sampler with top-p 0.9 and top-k 50 in all rows.
func drawInputs(w, v int) []*tensors.Tensor {
	rng := rand.New(rand.NewPCG(seed, 61))
	logprobs, uniform := make([]float32, w*v), make([]float64, w)
	rows := make([]Settings, w)
	for i := range rows {
		copy(logprobs[i*v:], randomLogprobs(rng, v))
		uniform[i], rows[i] = rng.Float64(), Settings{Temperature: 1, TopP: 0.9, TopK: 50}
	}
	temperature, topP, topK, _ := Inputs(rows)
	return []*tensors.Tensor{graphtest.Tensor(logprobs, w, v), graphtest.Tensor(uniform, w),
		graphtest.Tensor(temperature, w), graphtest.Tensor(topP, w), graphtest.Tensor(topK, w)}
}

// byLogprob returns the ids of the n likeliest tokens, in order.
func byLogprob(logprobs *graph.Node, n int) *graph.Node {
	likelier := graph.NewClosure(logprobs.Graph(), func(g *graph.Graph) []*graph.Node {
		a, b := graph.Parameter(g, "a", shapes.Make(dtypes.Float32)), graph.Parameter(g, "b", shapes.Make(dtypes.Float32))
		graph.Parameter(g, "idOfA", shapes.Make(dtypes.Int32))
		graph.Parameter(g, "idOfB", shapes.Make(dtypes.Int32))
		return []*graph.Node{graph.GreaterThan(a, b)}
	})
	ids := graph.SortFunc(likelier, -1, true, logprobs, iota32(logprobs))[1]
	return graph.Slice(ids, graph.AxisRange(), graph.AxisRange(0, n))
}
