package model

import (
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// TestBranches_Whole: branches have the output and the gradients of attention to the keys of their rows where a kernel
// of the device, which has causal attention only, computes whole rows. Padding aside.
func TestBranches_Whole(t *testing.T) {
	const rows, length, heads, keyHeads, e = 2, 6, 4, 2, 8
	rng := rand.New(rand.NewPCG(seed, 95))
	// Three branches of 5, 3 and 4 tokens: of 4 tokens of the first row, of 6 of the second, and of 2 tokens of the first
	// branch.
	starts, lengths := []int32{4, 6, 6}, []int{5, 3, 4}
	const own, size = 5, 12
	paths := [][]int32{prefix(0, 4), prefix(6, 6), append(prefix(0, 4), prefix(12, 2)...)}
	m := rows*length + 3*own
	keys, real := make([]int32, 3*size), append(slices.Repeat([]float32{1}, rows*length), make([]float32, 3*own)...)
	for r, path := range paths {
		path = append(path, prefix(int32(12+own*r), lengths[r])...)
		copy(keys[size*r:], path)
		for i := range lengths[r] {
			real[rows*length+own*r+i] = 1
		}
	}
	inputs := []*tensors.Tensor{
		graphtest.Tensor(normals(rng, []int{1, m, heads, e}), 1, m, heads, e),
		graphtest.Tensor(normals(rng, []int{1, m, keyHeads, e}), 1, m, keyHeads, e),
		graphtest.Tensor(normals(rng, []int{1, m, keyHeads, e}), 1, m, keyHeads, e),
		graphtest.Tensor(normals(rng, []int{1, m, heads * e}), 1, m, heads*e),
		tensors.FromFlatDataAndDimensions(keys, 3, size), tensors.FromFlatDataAndDimensions(starts, 3),
		graphtest.Tensor(real, 1, m, 1),
	}
	calls := 0
	run := func(k kernel) (values [][]float32) {
		out := graphtest.Run(t, graphtest.Device(t), func(in []*Node) []*Node {
			g := in[0].Graph()
			a := &attention{}
			a.branch(Input{Tokens: Zeros(g, shapeI32(rows, length)), Branches: []Branches{
				{Tokens: Zeros(g, shapeI32(3, own)), Keys: in[4], Start: in[5]},
			}})
			for _, p := range a.parts {
				p.kernel = k
			}
			y := a.join(selfAttention{scale: 0.3}, in[0], KV{K: in[1], V: in[2]})
			y = Mul(y, BroadcastToDims(in[6], y.Shape().Dimensions...))
			return append([]*Node{y}, Gradient(ReduceAllSum(Mul(y, in[3])), in[0], in[1], in[2])...)
		}, inputs...)
		for _, x := range out {
			values = append(values, graphtest.Values[float32](t, x))
		}
		return values
	}
	want := run(nil)
	got := run(func(q *Node, all KV, scale float64) *Node {
		calls++
		p := causal(Zeros(q.Graph(), shapeI32(q.Shape().Dim(0), q.Shape().Dim(1))))
		return p.attend(selfAttention{scale: scale}, q, all, nil)
	})
	require.Equal(t, 2, calls, "of the rows, and of the branches")
	for i, name := range []string{"output", "gradient of queries", "of keys", "of values"} {
		require.InDeltaSlice(t, want[i], got[i], 1e-5, "%s, seed %d", name, seed)
	}
}

// prefix are n numbers from first on.
func prefix(first int32, n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = first + int32(i)
	}
	return list
}

// TestBranches_ComputesWhole: short branches of a long prompt do not compute it again, nor do layers that see less of
// it or cap their scores.
func TestBranches_ComputesWhole(t *testing.T) {
	graphtest.Run(t, graphtest.Device(t), func(in []*Node) []*Node {
		of := func(length, size int, l selfAttention) bool {
			p := &part{length: length, keys: Zeros(in[0].Graph(), shapeI32(1, size, 1)), kernel: attendFlash}
			return p.computesWhole(l)
		}
		require.True(t, of(512, 1024, selfAttention{}))
		require.True(t, of(128, 1024, selfAttention{window: 1024}))
		require.False(t, of(127, 1024, selfAttention{}))
		require.False(t, of(512, 1024, selfAttention{cap: 50}))
		require.False(t, of(512, 1024, selfAttention{window: 1023}))
		return in
	}, graphtest.Tensor([]float32{0}, 1))
}
