package model

import (
	"math/rand/v2"
	"slices"
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

// BenchmarkExperts compares a layer of experts with an MLP that has as many weights as a token uses of it; that of
// "decode16" has those of all experts, for one token, and each expert is chosen once. Calls differ in their tokens, or
// in their MLP, so that weights come from memory.
//
//	go test ./model -run - -bench BenchmarkExperts
func BenchmarkExperts(b *testing.B) {
	for _, of := range []mlpBench{
		{name: "decode1", tokens: 1, units: 6144, calls: 16},
		{name: "decode16", tokens: 16, units: 128 * 768, calls: 1, turns: true},
		{name: "prefill512", tokens: 512, units: 6144, calls: 1},
		{name: "gradient2048", tokens: 2048, units: 6144, calls: 1, back: true},
	} {
		b.Run(of.name+"/experts", func(b *testing.B) { of.run(b, true) })
		b.Run(of.name+"/mlp", func(b *testing.B) { of.run(b, false) })
	}
}

// mlpBench is a comparison.
type mlpBench struct {
	name                 string
	tokens, units, calls int
	turns                bool // each expert is chosen once
	back                 bool // the gradient of tokens too
}

// inputs are the tokens of a call, and the router.
func (of mlpBench) inputs() (calls [][]float32, router []float32) {
	c, r := &benchmarked, rand.New(rand.NewPCG(seed, 6))
	draw := func(n int) []float32 {
		x := make([]float32, n*c.HiddenSize)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	router = draw(c.NumExperts)
	for i := range router {
		router[i] /= 45
	}
	for range of.calls {
		calls = append(calls, draw(of.tokens))
	}
	if of.turns { // a token chooses those that look like it
		for e := range c.NumExperts {
			copy(router[e*c.HiddenSize:][:c.HiddenSize], calls[0][e/c.ExpertsPerToken*c.HiddenSize:])
		}
	}
	return calls, router
}

func (of mlpBench) run(b *testing.B, experts bool) {
	b.Helper()
	c, device := &benchmarked, graphtest.CPU(b)
	calls, router := of.inputs()
	held := 1
	if !experts {
		held, router = min(6, of.calls), nil
	}
	var names []string
	var weights [][]any
	for range held {
		var list []any
		names, list = heldMLP(b, c, of.units, router)
		weights = append(weights, list)
	}
	exec, err := NewExec(device, func(in []*Node) *Node {
		f := &Forward{Config: c, Param: (&Params{Names: names}).Lookup(in[1:])}
		y := in[0]
		if experts {
			y = c.experts().build(f, y, "")
		} else {
			y = c.mlp().frozen().build(f, y, "")
		}
		if of.back {
			y = Gradient(ReduceAllSum(Mul(y, y)), in[0])[0]
		}
		return y
	})
	require.NoError(b, err)
	var tokens []any
	for _, x := range calls {
		if of.turns && !experts {
			x = x[:c.HiddenSize]
		}
		in, err := graphx.Upload(device, x, 1, len(x)/c.HiddenSize, c.HiddenSize)
		require.NoError(b, err)
		tokens = append(tokens, in)
	}
	call := func(i int) {
		out, err := exec.Call(append([]any{tokens[i%len(tokens)]}, weights[i%held]...)...)
		require.NoError(b, err)
		require.NoError(b, out[0].FinalizeAll())
	}
	call(0)
	n := 0
	for b.Loop() {
		call(n)
		n++
	}
	exec.Finalize()
	for _, x := range slices.Concat(append(weights, tokens)...) {
		require.NoError(b, x.(*tensors.Tensor).FinalizeAll())
	}
}
