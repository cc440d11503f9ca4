package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// attendBack builds attend and its gradients for dy, that of y, masked before the softmax goes back: those of k and v
// in both orders of their matmuls.
func attendBack(q, k, v, mask, dy *graph.Node) []*graph.Node {
	heads := []int{0, 1}
	y, p := attend(q, k, v, mask)
	dp := graph.DotGeneral(dy, []int{3}, heads, v, []int{3}, heads)
	mask = graph.BroadcastToDims(graph.Reshape(mask, 1, 1, q.Shape().Dim(2), k.Shape().Dim(2)), dp.Shape().Dimensions...)
	dp = graph.Where(mask, dp, graph.ScalarZero(dp.Graph(), dp.DType()))
	ds := graph.Mul(p, graph.Sub(dp, graph.ReduceAndKeep(graph.Mul(p, dp), graph.ReduceSum, -1)))
	out := []*graph.Node{y, graph.DotGeneral(ds, []int{3}, heads, k, []int{2}, heads)}
	for _, of := range [][2]*graph.Node{{ds, q}, {p, dy}} {
		out = append(out, graph.DotGeneral(of[0], []int{2}, heads, of[1], []int{2}, heads), graph.DotGeneral(of[1], []int{2},
			heads, of[0], []int{2}, heads))
	}
	return out
}

// TestSparse_SameBits: matmuls over the rows of what a mask left have the bits of those that multiply the zeros, and
// are known as such.
func TestSparse_SameBits(t *testing.T) {
	const seed = 8
	r := rand.New(rand.NewPCG(seed, 0))
	for name, mask := range masks {
		for _, size := range [][5]int{{1, 1, 1, 1, 1}, {2, 3, 70, 33, 8}, {1, 2, 61, 130, 33}, {1, 1, 130, 200, 16},
			{1, 1, 200, 65, 70}, {1, 1, 1100, 70, 8}} {
			in := append(attendInputs(r, size, mask), normal(r, size[0], size[1], size[2], size[4]))
			build := func(in []*graph.Node) []*graph.Node { return attendBack(in[0], in[1], in[2], in[3], in[4]) }
			t.Run(fmt.Sprint(name, size), func(t *testing.T) { sameUnfused(t, build, in) })
		}
	}
}

// TestSparse_Others: matmuls over the rows of what a mask left that are of double precision, or with a matrix that may
// be packed, are what they were.
func TestSparse_Others(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 0))
	const n, s, e = 70, 66, 9
	see := make([]bool, n*s)
	for i := range see {
		see[i] = i%s <= i/s
	}
	in := []*tensors.Tensor{normal(r, 1, 1, n, e), normal(r, 1, 1, s, e), normal(r, 1, 1, s, e),
		tensors.FromFlatDataAndDimensions(see, n, s), normal(r, n, e), normal(r, n)}
	build := func(in []*graph.Node) []*graph.Node {
		y, p := attend(in[0], in[1], in[2], in[3])
		p = graph.Reshape(p, n, s)
		double := func(x *graph.Node) *graph.Node { return graph.ConvertDType(x, dtypes.Float64) }
		return []*graph.Node{
			y, graph.DotGeneral(p, []int{0}, nil, in[4], []int{0}, nil), graph.DotGeneral(p, []int{0}, nil, in[5], []int{0},
				nil),
			graph.ConvertDType(graph.DotGeneral(double(p), []int{0}, nil, double(in[4]), []int{0}, nil), dtypes.Float32),
		}
	}
	sameUnfused(t, build, in)
	d := &spy{Device: newDevice(t, 1)}
	evaluate(t, d, build, in)
	if n := d.sparse(); n[false] != 1 || n[true] != 0 { // the matmul with a vector
		t.Errorf("%v sparse matmuls", n)
	}
}

// TestSparse_Found: the gradients of keys and values are matmuls over the rows of what a mask left, whichever side
// those are on.
func TestSparse_Found(t *testing.T) {
	s := &spy{Device: newDevice(t, 1)}
	r := rand.New(rand.NewPCG(9, 0))
	in := []*tensors.Tensor{
		normal(r, 1, 2, 40, 8), normal(r, 1, 2, 40, 8), normal(r, 1, 2, 40, 8),
		tensors.FromFlatDataAndDimensions(make([]bool, 1600), 40, 40), normal(r, 1, 2, 40, 8),
	}
	evaluate(t, s, func(in []*graph.Node) []*graph.Node { return attendBack(in[0], in[1], in[2], in[3], in[4]) }, in)
	if n := s.sparse(); n[false] != 2 || n[true] != 2 {
		t.Errorf("%d matmuls with zeros on the left and %d on the right, want 2 and 2", n[false], n[true])
	}
}

// sparse counts the sparse matmuls of the last graph with zeros on the left, and on the right.
func (s *spy) sparse() map[bool]int {
	found := map[bool]int{}
	for _, step := range s.plans[len(s.plans)-1].Steps {
		if p, ok := step.(*ir.SparseMatmul); ok {
			found[p.Right]++
		}
	}
	return found
}
