package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// TestReduce_Accuracy: sums over an axis as long as a vocabulary, of rows and of columns, lose no more than a few
// roundings. One running float32 has an error of 8e-6.
func TestReduce_Accuracy(t *testing.T) {
	const long, short, seed, limit = 151_936, 3, 5, 1e-6
	r := rand.New(rand.NewPCG(seed, 0))
	x := make([]float32, long*short)
	for i := range x {
		x[i] = r.Float32()
	}
	for name, c := range map[string]struct {
		dims          []int
		axis          int
		step, between int // from an element of a sum to the next, and from a sum to the next
	}{
		"rows":    {[]int{short, long}, 1, 1, long},
		"columns": {[]int{long, short}, 0, short, 1},
	} {
		d := newDevice(t, 2)
		shape := shapes.Make(dtypes.Float32, c.dims...)
		e := compileGraph(t, d, []shapes.Shape{shape}, func(f compute.Function, in []compute.Value) []compute.Value {
			return []compute.Value{must(f.ReduceSum(in[0], c.axis))(t)}
		})
		in := must(d.BufferFromFlatData(0, x, shape))(t)
		got := floatsOf(t, must(e.Execute([]compute.Buffer{in}, nil, 0))(t)[0])
		for i := range short {
			want := 0.0
			for l := range long {
				want += float64(x[i*c.between+l*c.step])
			}
			if e := math.Abs(float64(got[i])-want) / want; !(e < limit) {
				t.Errorf("%s, sum %d: the error is %.2g of it", name, i, e)
			}
		}
	}
}

// TestReduce_SameBits: the order of additions does not follow from where elements lie, which depends on what was fused.
// The step of an axis of one element once chose between rows and columns.
func TestReduce_SameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 0))
	build := func(in []*graph.Node) []*graph.Node {
		x := graph.BroadcastToDims(graph.Reshape(graph.ReduceAllSum(in[0]), 1, 1, 1, 1), 50, 4, 1, 30)
		x = graph.Sin(x) // fused, it is of one number
		return []*graph.Node{graph.ReduceSum(x, 0, 3)}
	}
	sameUnfused(t, build, []*tensors.Tensor{normal(r, 6000)})
}
