package model

import (
	"math/rand/v2"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// benchmarked is the size of a layer of Qwen3-30B-A3B, and the MLP that has as many weights as a token uses of it.
var benchmarked = Config{
	ModelType: "qwen3_moe", HiddenAct: "silu", HiddenSize: 2048, NumLayers: 1, NumHeads: 1, NumKVHeads: 1, HeadDim: 128,
	NumExperts: 128, ExpertsPerToken: 8, MoEIntermediateSize: 768, IntermediateSize: 6144, NormTopKProb: true,
}

// heldMLP are the weights of the experts, or of an MLP with so many units, in Q4_K.
func heldMLP(b *testing.B, c *Config, units int, router []float32) (names []string, list []any) {
	b.Helper()
	device := graphtest.CPU(b)
	blocks := make([]byte, ggml.Q4_K.Bytes(max(units, c.HiddenSize)))
	r := rand.New(rand.NewPCG(seed, 5))
	for i := range blocks {
		blocks[i] = byte(r.IntN(256)) & 0x2f
	}
	add := func(name string, rows, columns int) {
		buffer, err := device.(graphx.QuantizedPacker).PackQuantized(ggml.Q4_K, rows, columns, false,
			func(int) []byte { return blocks[:ggml.Q4_K.Bytes(columns)] })
		require.NoError(b, err)
		x, err := tensors.FromBuffer(buffer)
		require.NoError(b, err)
		names, list = append(names, name+weightSuffix), append(list, x)
	}
	mlp := func(p string, units int) {
		add(p+"gate_proj", units, c.HiddenSize)
		add(p+"up_proj", units, c.HiddenSize)
		add(p+"down_proj", c.HiddenSize, units)
	}
	if router == nil {
		mlp("mlp.", units)
		return names, list
	}
	x, err := graphx.Upload(device, router, c.NumExperts, c.HiddenSize)
	require.NoError(b, err)
	names, list = []string{"mlp.gate" + weightSuffix}, []any{x}
	for e := range c.NumExperts {
		mlp(c.experts().prefix("", e), c.MoEIntermediateSize)
	}
	return names, list
}

// BenchmarkExperts compares a layer of experts with an MLP. A ratio of 1 is that of the weights that a token uses; the
// MLP of "decode16" has those of all experts, for one token, and its tokens choose each expert once.
//
//	go test ./model -run - -bench BenchmarkExperts
func BenchmarkExperts(b *testing.B) {
	c := &benchmarked
	for _, kind := range []struct {
		name          string
		tokens, units int
		alone, back   bool
	}{
		{"decode1", 1, 6144, false, false}, {"decode16", 16, 128 * 768, true, false},
		{"prefill512", 512, 6144, false, false}, {"train2048", 2048, 6144, false, true},
	} {
		r := rand.New(rand.NewPCG(seed, 6))
		x := make([]float32, kind.tokens*c.HiddenSize)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		router := make([]float32, c.NumExperts*c.HiddenSize)
		for e := range c.NumExperts {
			for i := range c.HiddenSize {
				router[e*c.HiddenSize+i] = float32(r.NormFloat64()) / 45
				if kind.alone { // a token chooses those that look like it
					router[e*c.HiddenSize+i] = x[e/c.ExpertsPerToken*c.HiddenSize+i]
				}
			}
		}
		b.Run(kind.name+"/experts", func(b *testing.B) { benchmarkMLP(b, c, x, 0, router, kind.back) })
		if kind.alone {
			x = x[:c.HiddenSize]
		}
		b.Run(kind.name+"/mlp", func(b *testing.B) { benchmarkMLP(b, c, x, kind.units, nil, kind.back) })
	}
}

// benchmarkMLP runs the experts, or an MLP, and with back the gradient of tokens too.
func benchmarkMLP(b *testing.B, c *Config, x []float32, units int, router []float32, back bool) {
	b.Helper()
	device := graphtest.CPU(b)
	names, list := heldMLP(b, c, units, router)
	exec, err := NewExec(device, func(in []*Node) *Node {
		p := &Params{Names: names}
		f := &Forward{Config: c, Param: p.Lookup(in[1:])}
		var y *Node
		if router == nil {
			y = c.mlp().frozen().build(f, in[0], "")
		} else {
			y = c.experts().build(f, in[0], "")
		}
		if back {
			y = Gradient(ReduceAllSum(Mul(y, y)), in[0])[0]
		}
		return y
	})
	require.NoError(b, err)
	in, err := graphx.Upload(device, x, 1, len(x)/c.HiddenSize, c.HiddenSize)
	require.NoError(b, err)
	list = append([]any{in}, list...)
	run := func() {
		out, err := exec.Call(list...)
		require.NoError(b, err)
		require.NoError(b, out[0].FinalizeAll())
	}
	run()
	for b.Loop() {
		run()
	}
	exec.Finalize()
	for _, x := range list {
		require.NoError(b, x.(*tensors.Tensor).FinalizeAll())
	}
}
