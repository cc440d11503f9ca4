package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// TestTiles_LikeAtOnce: attention in tiles and in pieces has the output, in pieces to the bit, and the gradients of
// attention from all scores, also where they do not divide the tokens, with windows, caps, rows that begin within
// others, and queries that see nothing of a tile.
func TestTiles_LikeAtOnce(t *testing.T) {
	for _, c := range []struct {
		name                    string
		rows, heads, each, q, k int // rows, key heads, query heads for each, queries, keys
		size, window            int
		limit                   float64
	}{
		{"one tile", 1, 1, 1, 7, 7, 8, 0, 0},
		{"tiles", 2, 2, 3, 64, 64, 16, 0, 0},
		{"a rest", 2, 2, 1, 37, 37, 16, 0, 0},
		{"window within a tile", 1, 2, 2, 50, 50, 16, 5, 0},
		{"window of tiles", 1, 1, 2, 50, 50, 8, 21, 0},
		{"cap", 2, 1, 2, 40, 40, 16, 0, 1.5},
		{"cap and window", 1, 1, 2, 40, 40, 16, 12, 1.5},
		{"later queries", 2, 2, 2, 21, 60, 16, 0, 0},
		{"later queries, window", 2, 2, 2, 21, 60, 16, 9, 2},
		{"pieces of 128", 1, 1, 2, 300, 300, 128, 0, 0},
		{"pieces of 128, window", 1, 1, 2, 900, 900, 256, 40, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 90))
			const e = 8
			dims := [][]int{{c.rows, c.heads, c.each, c.q, e}, {c.rows, c.heads, c.k, e}, {c.rows, c.heads, c.k, e}, nil}
			dims[3] = dims[0]
			var inputs []*tensors.Tensor
			for _, d := range dims {
				inputs = append(inputs, graphtest.Tensor(normals(rng, d), d...))
			}
			run := func(attend func(p *part, q *Node, kv KV) *Node) [][]float32 {
				out := graphtest.Run(t, graphtest.Device(t), func(in []*Node) []*Node {
					p := laterPart(in[0], c.rows, c.q, c.k)
					y := attend(p, in[0], KV{K: in[1], V: in[2]})
					return append([]*Node{y}, Gradient(ReduceAllSum(Mul(y, in[3])), in[0], in[1], in[2])...)
				}, inputs...)
				var values [][]float32
				for _, x := range out {
					values = append(values, graphtest.Values[float32](t, x))
				}
				return values
			}
			want := run(func(p *part, q *Node, kv KV) *Node { return p.attendAtOnce(q, kv, c.window, c.limit) })
			tiles := run(func(p *part, q *Node, kv KV) *Node {
				return p.attendTiles(q, kv, c.window, c.limit, func(int) int { return c.size })
			})
			for i, what := range []string{"output", "queries", "keys", "values"} {
				require.Less(t, relative(want[i], tiles[i]), 2e-6, "%s in tiles, seed %d", what, seed)
			}
			for _, fused := range []bool{true, false} {
				got := run(func(p *part, q *Node, kv KV) *Node {
					p.uncached = true
					a := &pieces{p, c.window, c.limit, c.size, fused, q, kv.K, kv.V}
					return a.build()
				})
				for i, what := range []string{"output", "queries", "keys", "values"} {
					require.Less(t, relative(want[i], got[i]), 2e-6, "%s in pieces, fused: %v, seed %d", what, fused, seed)
				}
				if fused {
					graphtest.SameBits(t, want[0], got[0], "output")
				}
			}
		})
	}
}

// laterPart is a part whose queries are the last of the positions that there are: aligned where they are all.
func laterPart(like *Node, rows, queries, keys int) *part {
	if queries == keys {
		return causal(Iota(like.Graph(), shapeI32(rows, queries), 1))
	}
	g := like.Graph()
	query := AddScalar(Iota(g, shapeI32(rows, queries, keys), 1), int32(keys-queries))
	return &part{
		rows: rows, length: queries, key: Iota(g, shapeI32(rows, queries, keys), 2), query: query, masks: map[int]*Node{},
	}
}

// normals are random numbers of a shape.
func normals(rng *rand.Rand, dims []int) []float32 {
	n := 1
	for _, d := range dims {
		n *= d
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// relative is the length of a difference in units of that of want.
func relative(want, got []float32) float64 {
	var far, length float64
	for i := range want {
		far += math.Pow(float64(want[i])-float64(got[i]), 2)
		length += math.Pow(float64(want[i]), 2)
	}
	return math.Sqrt(far / length)
}

// TestTiles_Meets: no tile is left out that has a key which a query of another sees, and none is computed that has not.
func TestTiles_Meets(t *testing.T) {
	for _, window := range []int{0, 1, 3, 8, 100} {
		a := &tiles{part: &part{aligned: true}, window: window}
		for _, q := range spans(29, 8) {
			for _, k := range spans(29, 8) {
				some, all := false, true
				for i := q.from; i < q.to; i++ {
					for j := k.from; j < k.to; j++ {
						sees := j <= i && (window == 0 || j > i-window)
						some, all = some || sees, all && sees
					}
				}
				name := fmt.Sprintf("window %d, queries %v, keys %v", window, q, k)
				require.Equal(t, some, a.meets(q, k), name)
				if all {
					require.Nil(t, a.seen(q, k), name)
				}
			}
		}
	}
}

// TestInTiles: where scores would be many, and the device would keep them.
func TestInTiles(t *testing.T) {
	keeps, fused := graphtest.Reference(t), graphtest.Device(t)
	require.True(t, inTiles(keeps, 1024, 1024))
	require.True(t, inTiles(keeps, 256, 4096))
	require.False(t, inTiles(keeps, 1000, 1000))
	require.False(t, inTiles(keeps, 1, 1<<20), "a token at a time has one row of scores")
	require.Equal(t, !graphx.ProfileOf(fused).FusedAttention, inTiles(fused, 4096, 4096))
	for _, n := range []int{1, 512, 513, 4096, 4097, 16384} {
		require.LessOrEqual(t, len(spans(n, tileSize(n))), maxTiles)
	}
	require.Equal(t, 2048, tileSize(16384))
}
