package cpu

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// TestPieces_SameBits: a row that is reduced piece by piece gives the bits of the row reduced at once, with numbers that a sum
// rounds, zeros of both signs, and NaN.
func TestPieces_SameBits(t *testing.T) {
	d := newDevice(t, 1)
	r := rand.New(rand.NewPCG(11, 0))
	for _, op := range []compute.OpType{compute.OpTypeReduceSum, compute.OpTypeReduceMax, compute.OpTypeReduceMin} {
		k := reduceKernel(d.env.level, op, dtypes.Float32)
		for _, n := range []int{1, 63, 64, 2047, 2048, 2049, sumChunk - 1, sumChunk, sumChunk + 1, 2 * sumChunk, 5*sumChunk + 777} {
			for _, kind := range []string{"normal", "zeros", "NaN"} {
				x := make([]float32, n)
				for i := range x {
					x[i] = float32(r.NormFloat64())
					if kind == "zeros" {
						x[i] = float32(math.Copysign(0, float64(x[i])))
					}
				}
				if kind == "NaN" {
					x[r.IntN(n)] = float32(math.NaN())
				}
				var want, got float32
				k.rows(unsafe.Pointer(&want), unsafe.Pointer(&x[0]), 1, n)
				var sum partial
				k.pieces.begin(&sum)
				for at := 0; at < n; at += pieceLength {
					end := min(n, at+pieceLength)
					got = k.pieces.next(&sum, x[at:end], end == n)
				}
				if math.Float32bits(want) != math.Float32bits(got) && want == want {
					t.Errorf("%s of %d %s: %v at once, %v in pieces", op, n, kind, want, got)
				}
				if (want != want) != (got != got) {
					t.Errorf("%s of %d: NaN once only", op, n)
				}
			}
		}
	}
}

// TestPhases_SameBits: loops over rows that are computed in pieces have the bits of their operations one by one: several
// reductions one after another, values that are stored for a later phase and such that are computed again, numbers a row and
// numbers a column, and outputs of all of them.
func TestPhases_SameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 0))
	const rows, width = 3, longRow + 4*pieceLength + 13
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
				graph.ReduceSum(graph.Where(less, graph.Sub(z, graph.Log(graph.ReduceAndKeep(graph.Exp(z), graph.ReduceSum, -1))), graph.ZerosLike(z)), -1),
			}
		},
		"norms": func(in []*graph.Node) []*graph.Node {
			x := graph.Mul(graph.Add(in[0], in[1]), graph.BroadcastToDims(graph.Reshape(in[2], 1, width), all...))
			n := graph.Div(x, graph.Sqrt(graph.ReduceAndKeep(graph.Mul(x, x), graph.ReduceSum, -1)))
			least := graph.ReduceMin(graph.Mul(n, graph.BroadcastToDims(graph.Reshape(in[3], rows, 1), all...)), -1)
			return []*graph.Node{x, n, least, graph.Exp(graph.Add(n, graph.BroadcastToDims(graph.Reshape(least, rows, 1), all...)))}
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
