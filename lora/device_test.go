package lora

import (
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/graph"
)

// normal returns n random numbers.
func normal(src *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(src.NormFloat64())
	}
	return out
}

// linear is the base layer of tests: x [..., In] times w [Out, In].
func linear(w *graph.Node) func(x *graph.Node) *graph.Node {
	return func(x *graph.Node) *graph.Node {
		return graph.DotGeneral(x, []int{x.Rank() - 1}, nil, w, []int{1}, nil)
	}
}
