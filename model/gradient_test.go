package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"
)

// fourPoints is the difference formula with an error of h⁴: float32 losses allow no small steps.
var fourPoints = fd.Formula{
	Stencil: []fd.Point{{Loc: -2, Coeff: 1.0 / 12}, {Loc: -1, Coeff: -8.0 / 12}, {Loc: 1, Coeff: 8.0 / 12},
		{Loc: 2, Coeff: -1.0 / 12}},
	Derivative: 1, Step: 0.01,
}

// TestForward_GradientMatchesFiniteDifferences differentiates the loss along random directions through all weights, and
// along one direction through each kind of tensor alone, where an error cannot hide behind larger gradients.
//
// A loss near 6 that is a mean of 62 float32 logprobs is wrong by about 1e-7; divided by the step of 0.01 along a
// direction of length 1, a derivative is wrong by 1e-5, and the formula adds h⁴ times the fifth derivative.
func TestForward_GradientMatchesFiniteDifferences(t *testing.T) {
	for _, tied := range []bool{true, false} {
		c := testConfig()
		c.TieEmbeddings, c.VocabSize, c.IntermediateSize = tied, 64, 80
		w := testWeights(t, c)
		rng := rand.New(rand.NewPCG(seed, 40))
		l := newLossOf(t, c, testTokens(rng, c, 64), 2)
		_, grads := l.gradient(t, w)
		moves := [][]int{nil, nil} // indices of tensors that move, nil for all
		for i := range w.Tensors {
			if i < 12 || i > 22 {
				moves = append(moves, []int{i})
			}
		}
		for _, moving := range moves {
			along := direction(rng, grads, moving)
			want := 0.0
			for i, d := range along {
				for j := range d {
					want += d[j] * float64(grads[i][j])
				}
			}
			got := fd.Derivative(func(h float64) float64 { return l.near(t, w, along, h) }, 0, &fd.Settings{Formula: fourPoints})
			require.Greater(t, math.Abs(want), 1e-3, "the direction %v shows nothing", moving)
			require.InDelta(t, want, got, 3e-5+1e-3*math.Abs(want), "tied %v, tensors %v, seed %d", tied, moving, seed)
		}
	}
}

// direction returns a random direction of length 1 through the given tensors, in the shapes of the graph, that leans
// towards the gradient: a derivative along a purely random one would drown in rounding.
func direction(rng *rand.Rand, grads [][]float32, moving []int) [][]float64 {
	out := make([][]float64, len(grads))
	var random, slope float64
	for i, g := range grads {
		out[i] = make([]float64, len(g))
		if moving != nil && !slices.Contains(moving, i) {
			continue
		}
		for j := range g {
			out[i][j] = rng.NormFloat64()
			random += out[i][j] * out[i][j]
			slope += float64(g[j]) * float64(g[j])
		}
	}
	length := 0.0
	for i, g := range grads {
		for j := range g {
			if out[i][j] != 0 {
				out[i][j] = out[i][j]/math.Sqrt(random) + float64(g[j])/math.Sqrt(slope)/2
				length += out[i][j] * out[i][j]
			}
		}
	}
	for i := range out {
		for j := range out[i] {
			out[i][j] /= math.Sqrt(length)
		}
	}
	return out
}

// near is the loss a step of h along a direction away from w.
func (l *lossOf) near(t *testing.T, w *Weights, along [][]float64, h float64) float64 {
	t.Helper()
	moved := &Weights{Config: w.Config, Tensors: slices.Clone(w.Tensors)}
	for i := range moved.Tensors {
		x := &moved.Tensors[i]
		x.Data = slices.Clone(x.Data)
		for j := range x.Data {
			x.Data[j] = float32(float64(x.Data[j]) + h*along[i][j])
		}
	}
	loss, _ := l.run(t, l.value, moved)
	return loss
}
