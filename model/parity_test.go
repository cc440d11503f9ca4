package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/lora"
)

// The tests of this file compare bits.

// TestForward_BatchDoesNotMatter: each sequence of a batch has the logprobs that it has alone, wherever it stands.
func TestForward_BatchDoesNotMatter(t *testing.T) {
	f := newForward(t, testWeights(t, oddConfig()), nil, nil)
	rng := rand.New(rand.NewPCG(seed, 30))
	const length, distinct = 47, 4
	var sequences [distinct][]int32
	var alone [distinct][]float32
	for i := range sequences {
		sequences[i] = testTokens(rng, f.config, length)
		alone[i] = f.logprobs(t, sequences[i], 1)
	}
	for _, rows := range []int{2, 3, 5, 16, 33, 64} { // from 33 rows on the kernels for large matmuls are used
		var ids []int32
		for i := range rows {
			ids = append(ids, sequences[i*3%distinct]...)
		}
		got := f.logprobs(t, ids, rows)
		for i := range rows {
			n := len(alone[0])
			sameBits(t, alone[i*3%distinct], got[i*n:(i+1)*n], "row %d of %d, seed %d", i, rows, seed)
		}
	}
}

// TestForward_PaddingDoesNotMatter: tokens behind a sequence change nothing, whatever they are.
func TestForward_PaddingDoesNotMatter(t *testing.T) {
	f := newForward(t, testWeights(t, oddConfig()), nil, nil)
	rng := rand.New(rand.NewPCG(seed, 31))
	for _, length := range []int{1, 31, 48, 113} {
		ids := testTokens(rng, f.config, length)
		want := f.logprobs(t, ids, 1)
		for _, padded := range []int{length, length + 1, 127, 144, 160} {
			if padded < length {
				continue
			}
			got := f.logprobs(t, append(ids[:length:length], testTokens(rng, f.config, padded-length)...), 1)
			sameBits(t, want, got[:len(want)], "%d tokens padded to %d, seed %d", length, padded, seed)
		}
	}
}

// TestForward_PaddingBeyondTheContext: rows may be padded to more tokens than the model knows positions for.
func TestForward_PaddingBeyondTheContext(t *testing.T) {
	c := oddConfig()
	c.MaxPositions = 50
	f := newForward(t, testWeights(t, c), nil, nil)
	ids := testTokens(rand.New(rand.NewPCG(seed, 39)), c, 64)
	want := f.logprobs(t, ids[:48], 1)
	sameBits(t, want, f.logprobs(t, ids, 1)[:len(want)], "without a cache, seed %d", seed)
	got := newCached(t, f, 1, 64).logprobs(t, ids, []int32{0}, []int{48})
	sameBits(t, want, got[:len(want)], "with a cache, seed %d", seed)
}

// TestForward_IsCausal: a token changes what comes after it, and nothing before.
func TestForward_IsCausal(t *testing.T) {
	f := newForward(t, testWeights(t, oddConfig()), nil, nil)
	v := f.config.VocabSize
	ids := testTokens(rand.New(rand.NewPCG(seed, 32)), f.config, 48)
	want := f.logprobs(t, ids, 1)
	for _, at := range []int{0, 17, 47} {
		changed := slices.Clone(ids)
		changed[at] = (changed[at] + 1) % int32(v)
		got := f.logprobs(t, changed, 1)
		sameBits(t, want[:at*v], got[:at*v], "before the token %d, seed %d", at, seed)
		for i := at; i < len(ids); i++ {
			require.NotEqual(t, want[i*v:(i+1)*v], got[i*v:(i+1)*v], "position %d does not see token %d", i, at)
		}
	}
}

// cached runs passes with a cache.
type cached struct {
	*forward
	rows   int
	blocks []int32           // of each row [B, M], in an order of its own
	layers []*tensors.Tensor // keys and values of each layer, [K, P, C, E]
	exec   *graph.Exec
}

// blockTokens is the size of a block of the cache.
const blockTokens = 8

func newCached(t testing.TB, f *forward, rows, capacity int) *cached {
	t.Helper()
	c := &cached{forward: f, rows: rows}
	heads, dim, n := f.config.NumKVHeads, f.config.HeadDim, len(f.params.Names)
	all := 1 + rows*((capacity+blockTokens-1)/blockTokens)
	for _, i := range rand.New(rand.NewPCG(seed, 40)).Perm(all - 1) {
		c.blocks = append(c.blocks, int32(i+1))
	}
	for range 2 * f.config.NumLayers {
		stale := make([]float32, heads*all*blockTokens*dim) // what another sequence has left in the blocks
		for i := range stale {
			if i/(blockTokens*dim)%all > 0 {
				stale[i] = float32(i % 7)
			}
		}
		c.layers = append(c.layers, graphtest.Tensor(stale, heads, all, blockTokens, dim))
	}
	var err error
	c.exec, err = graph.NewExec(graphtest.Device(t), func(in []*graph.Node) []*graph.Node {
		m := &Forward{Config: f.config, Param: f.params.Lookup(in)}
		past := &Cache{Start: in[len(in)-3], Count: in[len(in)-2], Blocks: in[len(in)-1]}
		for i := n; i < len(in)-4; i += 2 {
			past.Layers = append(past.Layers, KV{K: in[i], V: in[i+1]})
		}
		hidden, next := m.Hidden(Input{Tokens: in[len(in)-4], Cache: past})
		out := []*graph.Node{m.LogProbs(graph.Reshape(hidden, -1, f.config.HiddenSize))}
		for _, kv := range next {
			out = append(out, kv.K, kv.V)
		}
		return out
	})
	require.NoError(t, err)
	c.exec.SetMaxCache(-1)
	t.Cleanup(c.exec.Finalize)
	return c
}

// logprobs computes the next tokens of each row, of which there are start[row] already and used[row] are not padding.
func (c *cached) logprobs(t testing.TB, ids []int32, start []int32, used []int) []float32 {
	t.Helper()
	count := make([]int32, c.rows)
	for i, n := range used {
		count[i] = int32(n)
	}
	in := slices.Concat(c.params.Tensors, c.layers,
		[]*tensors.Tensor{graphtest.Tensor(ids, c.rows, len(ids)/c.rows), graphtest.Tensor(start, c.rows),
			graphtest.Tensor(count, c.rows), graphtest.Tensor(c.blocks, c.rows, len(c.blocks)/c.rows)})
	out := graphtest.Call(t, c.exec, in...)
	c.layers = out[1:]
	return graphtest.Values[float32](t, out[0])
}

// TestForward_CacheDoesNotMatter feeds three sequences in pieces of random length, padded to few widths, each row at
// its own position: every token has the logprobs of one pass over the whole.
func TestForward_CacheDoesNotMatter(t *testing.T) {
	f := newForward(t, testWeights(t, oddConfig()), nil, nil)
	v := f.config.VocabSize
	for _, capacity := range []int{47, 96, 160} {
		rng := rand.New(rand.NewPCG(seed, uint64(capacity)))
		const rows = 3
		var whole [rows][]int32
		var want [rows][]float32
		for i := range whole {
			whole[i] = testTokens(rng, f.config, capacity)
			want[i] = f.logprobs(t, whole[i], 1)
		}
		c := newCached(t, f, rows, capacity)
		start := make([]int32, rows)
		for step := 0; ; step++ {
			width := []int{31, 1, 4, 1, 17, 1}[step%6]
			ids, used := make([]int32, rows*width), make([]int, rows)
			left := 0
			for i := range rows {
				used[i] = min(rng.IntN(width+1), capacity-int(start[i])) // 0: a slot without anything to compute
				left += capacity - int(start[i])
				piece := ids[i*width : (i+1)*width]
				copy(piece, testTokens(rng, f.config, width)) // padding
				copy(piece, whole[i][start[i]:int(start[i])+used[i]])
			}
			if left == 0 {
				break
			}
			got := c.logprobs(t, ids, start, used)
			for i := range rows {
				sameBits(t, want[i][int(start[i])*v:(int(start[i])+used[i])*v], got[i*width*v:(i*width+used[i])*v],
					"row %d, %d tokens after %d of %d, step %d, seed %d", i, used[i], start[i], capacity, step, seed)
				start[i] += int32(used[i])
			}
		}
	}
}

// testAdapter has random B, or B = 0.
func testAdapter(t *testing.T, c *Config, rank int, zero bool) (*lora.Adapter, []*tensors.Tensor) {
	t.Helper()
	var shapes []lora.LayerShape
	for _, l := range c.Linears() {
		shapes = append(shapes, lora.LayerShape(l))
	}
	a, err := lora.New(lora.Config{Rank: rank}, shapes, seed)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(seed, 33))
	for _, l := range a.Layers() {
		for i := range l.B {
			if !zero {
				l.B[i] = float32(rng.NormFloat64() * 0.05)
			}
		}
	}
	var in []*tensors.Tensor
	for _, p := range a.Params() {
		in = append(in, graphtest.Tensor(p.Data, p.Shape...))
	}
	return a, in
}

// withAdapter compiles a model with an adapter.
func withAdapter(t *testing.T, w *Weights, rank int, zero bool) (*forward, *lora.Adapter) {
	t.Helper()
	a, in := testAdapter(t, w.Config, rank, zero)
	return newForward(t, w, in, func(extra []*graph.Node) linearHook {
		linear, _ := a.Hooks(lora.Nodes{Trained: extra})
		return linear
	}), a
}

// TestForward_AdapterOfZeros: at the start of training, with B = 0, the model is the base model bit for bit.
func TestForward_AdapterOfZeros(t *testing.T) {
	w := testWeights(t, oddConfig())
	ids := testTokens(rand.New(rand.NewPCG(seed, 34)), w.Config, 64)
	want := newForward(t, w, nil, nil).logprobs(t, ids, 2)
	for _, rank := range []int{1, 8, 40} {
		f, _ := withAdapter(t, w, rank, true)
		sameBits(t, want, f.logprobs(t, ids, 2), "rank %d, seed %d", rank, seed)
	}
}

// TestForward_AdapterIsMergedWeights: an adapter computes what the weights do that it is merged into.
func TestForward_AdapterIsMergedWeights(t *testing.T) {
	w := testWeights(t, oddConfig())
	ids := testTokens(rand.New(rand.NewPCG(seed, 35)), w.Config, 64)
	base := newForward(t, w, nil, nil).logprobs(t, ids, 2)
	f, a := withAdapter(t, w, 4, false)
	got := f.logprobs(t, ids, 2)
	for _, l := range a.Layers() {
		require.NoError(t, a.Merge(find(t, w, l.Name+".weight").Data, l.Name))
	}
	want := newForward(t, w, nil, nil).logprobs(t, ids, 2)
	require.InDeltaSlice(t, want, got, 2e-4, "seed %d", seed)
	furthest := float32(0)
	for i := range base {
		furthest = max(furthest, base[i]-got[i], got[i]-base[i])
	}
	require.Greater(t, furthest, float32(0.1), "the adapter changes nothing")
}

// TestForward_AdapterBatchAndPadding: with an adapter too, company and padding do not matter.
func TestForward_AdapterBatchAndPadding(t *testing.T) {
	for _, rank := range []int{3, 16, 40} {
		f, _ := withAdapter(t, testWeights(t, oddConfig()), rank, false)
		rng := rand.New(rand.NewPCG(seed, 36))
		ids := testTokens(rng, f.config, 48)
		want := f.logprobs(t, ids, 1)
		padded := append(ids[:48:48], testTokens(rng, f.config, 16)...)
		got := f.logprobs(t, slices.Concat(testTokens(rng, f.config, 64), padded, padded, testTokens(rng, f.config, 64)), 4)
		n := 64 * f.config.VocabSize
		sameBits(t, want, got[n:n+len(want)], "rank %d, seed %d", rank, seed)
		sameBits(t, want, got[2*n:2*n+len(want)], "rank %d, seed %d", rank, seed)
	}
}

// TestForward_CallsLinearForEveryLayer: the hook sees each linear layer of the blocks once, as Linears lists it, with
// rows flattened.
func TestForward_CallsLinearForEveryLayer(t *testing.T) {
	w := testWeights(t, oddConfig())
	var seen []string
	newForward(t, w, nil, func([]*graph.Node) linearHook {
		seen = nil
		return func(x *graph.Node, name string, base func(*graph.Node) *graph.Node) *graph.Node {
			y := base(x)
			require.Equal(t, 2*32, x.Shape().Dim(0))
			seen = append(seen, fmt.Sprintf("%s %d %d", name, x.Shape().Dim(1), y.Shape().Dim(1)))
			return y
		}
	}).logprobs(t, testTokens(rand.New(rand.NewPCG(seed, 37)), w.Config, 64), 2)
	var want []string
	for _, l := range w.Config.Adaptable() {
		if !l.Embedding {
			want = append(want, fmt.Sprintf("%s %d %d", l.Name, l.In, l.Out))
		}
	}
	require.ElementsMatch(t, want, seen)
}

// TestForward_LogProbsAreNormalised: each row is a distribution.
func TestForward_LogProbsAreNormalised(t *testing.T) {
	f := newForward(t, testWeights(t, oddConfig()), nil, nil)
	got := f.logprobs(t, testTokens(rand.New(rand.NewPCG(seed, 38)), f.config, 64), 2)
	for row := range slices.Chunk(got, f.config.VocabSize) {
		sum := 0.0
		for _, p := range plainSoftmax(widen(row)) {
			sum += p
		}
		require.InDelta(t, 1, sum, 1e-9)
		for i, lp := range plainLogSoftmax(widen(row)) {
			require.InDelta(t, lp, row[i], 2e-6)
			require.LessOrEqual(t, row[i], float32(1e-6))
		}
	}
}
