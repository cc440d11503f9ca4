package cpu

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/backend/device/cpu/internal/compile"
)

// TestPhases_SameBits: loops over rows that are computed in pieces have the bits of their operations one by one:
// several reductions one after another, values that are stored for a later phase and such that are computed again,
// numbers a row and numbers a column, and outputs of all of them.
func TestPhases_SameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 0))
	const rows, width = 3, compile.LongRow + 4*compile.PieceLength + 13
	in := []*tensors.Tensor{normal(r, rows, width), normal(r, rows, width), normal(r, width), normal(r, rows)}
	all := []int{rows, width}
	for name, build := range map[string]func(in []*graph.Node) []*graph.Node{
		"softmax and its logarithm": func(in []*graph.Node) []*graph.Node {
			return []*graph.Node{graph.Softmax(in[0], -1), graph.LogSoftmax(in[0], -1)}
		},
		"chosen": func(in []*graph.Node) []*graph.Node {
			chosen := graph.Equal(graph.BroadcastToDims(graph.Reshape(in[3], rows, 1), all...), in[1])
			less := graph.LessThan(graph.BroadcastToDims(graph.Reshape(in[3], rows, 1), all...), in[1])
			z := graph.Sub(in[0], graph.ReduceAndKeep(in[0], graph.ReduceMax, -1))
			return []*graph.Node{
				graph.ReduceSum(graph.Where(chosen, in[0], graph.ZerosLike(z)), -1),
				graph.ReduceSum(graph.Where(less, graph.Sub(z, graph.Log(graph.ReduceAndKeep(graph.Exp(z), graph.ReduceSum, -1))),
					graph.ZerosLike(z)), -1),
			}
		},
		"norms": func(in []*graph.Node) []*graph.Node {
			x := graph.Mul(graph.Add(in[0], in[1]), graph.BroadcastToDims(graph.Reshape(in[2], 1, width), all...))
			n := graph.Div(x, graph.Sqrt(graph.ReduceAndKeep(graph.Mul(x, x), graph.ReduceSum, -1)))
			least := graph.ReduceMin(graph.Mul(n, graph.BroadcastToDims(graph.Reshape(in[3], rows, 1), all...)), -1)
			return []*graph.Node{x, n, least, graph.Exp(graph.Add(n, graph.BroadcastToDims(graph.Reshape(least, rows, 1),
				all...)))}
		},
		"whole numbers": func(in []*graph.Node) []*graph.Node {
			x := graph.ConvertDType(graph.MulScalar(in[0], 100), dtypes.Int32)
			y := graph.ReduceSum(x, -1)
			return []*graph.Node{graph.ConvertDType(y, dtypes.Float32), graph.ReduceMax(in[1], -1)}
		},
	} {
		t.Run(name, func(t *testing.T) { sameUnfused(t, build, in) })
	}
}
