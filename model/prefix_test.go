package model

import (
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/dev/fixtures"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// TestPrefix_LikeWhole: rows that read a prefix in common, and their own cache behind it, have the logprobs of passes
// over whole sequences, for all model families: groups have prefixes of different lengths, one has none, and rows have
// different numbers of tokens behind them.
func TestPrefix_LikeWhole(t *testing.T) {
	eachFixture(t, func(t *testing.T, _ *fixtures.Model, w *Weights) {
		const groups, each, size, width, steps = 3, 2, 13, 4, 3
		const rows = groups * each
		c, rng := w.Config, rand.New(rand.NewPCG(seed, 61))
		common := []int32{13, 7, 0} // tokens of each prefix
		prefixes, own := make([]int32, groups*size), testTokens(rng, c, rows*(width+steps))
		for i, n := range common {
			copy(prefixes[i*size:], testTokens(rng, c, int(n)))
		}
		count := []int32{4, 1, 3, 2, 4, 1} // of the first pass, of width
		list := make([]int32, rows)
		for i := range list {
			list[i] = common[i/each]
		}
		f := newForward(t, w, nil, nil)
		n := len(f.params.Names)
		kvs := func(rows, tokens int) (list []*tensors.Tensor) {
			for range 2 * c.NumLayers {
				zeros := make([]float32, rows*c.NumKVHeads*tokens*c.HeadDim)
				list = append(list, graphtest.Tensor(zeros, rows, c.NumKVHeads, tokens, c.HeadDim))
			}
			return list
		}
		pairs := func(in []*Node) (list []KV) {
			for i := 0; i < len(in); i += 2 {
				list = append(list, KV{K: in[i], V: in[i+1]})
			}
			return list
		}
		in := append(f.params.Tensors[:n:n], kvs(groups, size)...)
		in = append(in, kvs(rows, width+steps)...)
		first := make([]int32, 0, rows*width)
		next := make([][]int32, steps)
		for i := range rows {
			row := own[i*(width+steps) : (i+1)*(width+steps)]
			first = append(first, row[:width]...)
			for s := range steps {
				next[s] = append(next[s], row[int(count[i])+s])
			}
		}
		in = append(in, graphtest.Tensor(prefixes, groups, size), graphtest.Tensor(common, groups),
			graphtest.Tensor(first, rows, width), graphtest.Tensor(list, rows), graphtest.Tensor(count, rows))
		for _, x := range next {
			in = append(in, graphtest.Tensor(x, rows, 1))
		}
		out := graphtest.Run(t, graphtest.Device(t), func(in []*Node) []*Node {
			m, l := &Forward{Config: c, Param: f.params.Lookup(in[:n])}, 2*c.NumLayers
			layers, behind, rest := pairs(in[n:n+l]), pairs(in[n+l:n+2*l]), in[n+2*l:]
			start, lengths := rest[3], rest[4]
			_, layers = m.Hidden(Input{Tokens: rest[0], Cache: &Cache{
				Start: ZerosLike(rest[1]), Count: rest[1], Fresh: true, Layers: layers,
			}})
			past := &Cache{Start: start, Count: lengths, Layers: behind, Prefix: &Prefix{Count: rest[1], Layers: layers}}
			var outputs []*Node
			pass := func(tokens *Node) {
				var hidden *Node
				hidden, past.Layers = m.Hidden(Input{Tokens: tokens, Cache: past})
				outputs = append(outputs, m.LogProbs(Reshape(hidden, -1, c.HiddenSize)))
				past.Start = Add(past.Start, past.Count)
				past.Count = OnesLike(past.Count)
			}
			pass(rest[2])
			for _, x := range rest[5:] {
				pass(x)
			}
			return outputs
		}, in...)
		v := c.VocabSize
		for i := range rows {
			row := own[i*(width+steps) : (i+1)*(width+steps)]
			whole := slices.Concat(prefixes[i/each*size:][:list[i]], row[:int(count[i])+steps])
			want := f.logprobs(t, whole, 1)[int(list[i])*v:]
			k := int(count[i])
			got := append([]float32{}, graphtest.Values[float32](t, out[0])[i*width*v:(i*width+k)*v]...)
			for _, x := range out[1:] {
				got = append(got, graphtest.Values[float32](t, x)[i*v:(i+1)*v]...)
			}
			require.Len(t, got, len(want))
			require.InDeltaSlice(t, want, got, 2e-4, "row %d, seed %d", i, seed)
		}
	})
}

// TestPrefix_Refused: a cache that would not read its prefix is refused.
func TestPrefix_Refused(t *testing.T) {
	blocks, prefix := new(Node), new(Prefix)
	require.PanicsWithValue(t, "model: Cache.Prefix is for a cache of rows: leave Blocks nil, or let each row name the "+
		"blocks of the prefix", (&Cache{Blocks: blocks, Prefix: prefix}).assertPrefix)
	require.PanicsWithValue(t, "model: Cache.Fresh reads nothing of a cache, and so no Prefix: leave one of them out",
		(&Cache{Fresh: true, Prefix: prefix}).assertPrefix)
	for _, c := range []Cache{{Prefix: prefix}, {Blocks: blocks}, {Fresh: true}, {}} {
		require.NotPanics(t, c.assertPrefix)
	}
}
