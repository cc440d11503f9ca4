package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// known are the shapes of released models, from their config.json, and a small one.
var known = map[string]model.Config{
	"tiny": qwen3(model.Config{
		VocabSize: 512, HiddenSize: 128, IntermediateSize: 384, NumLayers: 3, NumHeads: 4, NumKVHeads: 2, HeadDim: 32,
		TieEmbeddings: true,
	}),
	"qwen3-0.6b": qwen3(model.Config{
		VocabSize: 151936, HiddenSize: 1024, IntermediateSize: 3072, NumLayers: 28, NumHeads: 16, NumKVHeads: 8, HeadDim: 128,
		TieEmbeddings: true,
	}),
	"qwen3-4b": qwen3(model.Config{
		VocabSize: 151936, HiddenSize: 2560, IntermediateSize: 9728, NumLayers: 36, NumHeads: 32, NumKVHeads: 8, HeadDim: 128,
		TieEmbeddings: true,
	}),
	"qwen2.5-7b": qwen2(model.Config{
		VocabSize: 152064, HiddenSize: 3584, IntermediateSize: 18944, NumLayers: 28, NumHeads: 28, NumKVHeads: 4,
		HeadDim: 128,
	}),
	"qwen2.5-14b": qwen2(model.Config{
		VocabSize: 152064, HiddenSize: 5120, IntermediateSize: 13824, NumLayers: 48, NumHeads: 40, NumKVHeads: 8,
		HeadDim: 128,
	}),
	"llama-3-8b": llama(model.Config{
		VocabSize: 128256, HiddenSize: 4096, IntermediateSize: 14336, NumLayers: 32, NumHeads: 32, NumKVHeads: 8,
		HeadDim: 128,
	}),
}

// qwen3 completes a configuration with what all models of Qwen3 have in common.
func qwen3(c model.Config) model.Config {
	c.ModelType, c.HiddenAct = "qwen3", "silu"
	c.MaxPositions, c.RMSNormEps, c.RopeTheta = 32768, 1e-6, 1e6
	return c
}

func qwen2(c model.Config) model.Config {
	c = qwen3(c)
	c.ModelType = "qwen2"
	return c
}

func llama(c model.Config) model.Config {
	c = qwen3(c)
	c.ModelType, c.RMSNormEps, c.RopeTheta = "llama", 1e-5, 5e5
	return c
}

func shapeNames() string { return strings.Join(slices.Sorted(maps.Keys(known)), ", ") }

func configOf(shape string) (*model.Config, error) {
	c, ok := known[shape]
	if !ok {
		return nil, fmt.Errorf("%q is no shape: there are %s", shape, shapeNames())
	}
	return &c, c.Validate()
}

// draw makes the weights on the device, where each tensor goes from random bits to its type; the host holds none.
// Tensors of one kind and shape share a program: on a GPU each takes a moment to compile.
func draw(device compute.Backend, c *model.Config, matrices dtypes.DType) (*model.Params, error) {
	p, programs := &model.Params{}, map[string]*Exec{}
	for i, spec := range c.Specs() {
		key := fmt.Sprint(spec.Shape, isBias(spec))
		if programs[key] == nil {
			exec, err := NewExec(device, func(number *Node) *Node { return drawn(number, spec, matrices) })
			if err != nil {
				return nil, err
			}
			programs[key] = exec
		}
		x, err := programs[key].Call1(uint32(i + 1))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", spec.Name, err)
		}
		p.Names, p.Tensors = append(p.Names, spec.Name), append(p.Tensors, x)
		if matrices == dtypes.Int8 && len(spec.Shape) == 2 {
			scales := slices.Repeat([]float32{largest(spec) / math.MaxInt8}, spec.Shape[0])
			if x, err = graphx.Upload(device, scales, spec.Shape[0]); err != nil {
				return nil, fmt.Errorf("%s: %w", spec.Name, err)
			}
			p.Names, p.Tensors = append(p.Names, spec.Name+".scale"), append(p.Tensors, x)
		}
	}
	return p, nil
}

func isBias(spec model.Spec) bool { return strings.HasSuffix(spec.Name, ".bias") }

// drawn builds norms of one, biases of zero, and matrices of a standard deviation of 1/sqrt(in), from a uniform
// distribution.
func drawn(number *Node, spec model.Spec, matrices dtypes.DType) *Node {
	g, shape := number.Graph(), shapes.Make(dtypes.Float32, spec.Shape...)
	if len(spec.Shape) == 1 {
		if isBias(spec) {
			return Zeros(g, shape)
		}
		return Ones(g, shape)
	}
	// The finalizer of MurmurHash3 (Appleby 2011) over the number of an element.
	x := Add(Mul(word(g, spec.Shape, 0), word32(g, uint32(spec.Shape[1]))), word(g, spec.Shape, 1))
	x = BitwiseXor(x, Mul(number, word32(g, 0x9e3779b9)))
	for _, r := range []struct{ shift, factor uint32 }{{16, 0x85ebca6b}, {13, 0xc2b2ae35}} {
		x = Mul(BitwiseXor(x, BitwiseShiftRightLogical(x, word32(g, r.shift))), word32(g, r.factor))
	}
	x = BitwiseShiftRightLogical(BitwiseXor(x, BitwiseShiftRightLogical(x, word32(g, 16))), word32(g, 8))
	u := AddScalar(MulScalar(ConvertDType(ConvertDType(x, dtypes.Int32), dtypes.Float32), 1.0/(1<<24)), -0.5)
	if matrices == dtypes.Int8 {
		return ConvertDType(Round(MulScalar(u, 2*math.MaxInt8)), matrices)
	}
	return ConvertDType(MulScalar(u, 2*float64(largest(spec))), matrices)
}

// largest is the largest element of a matrix of uniform distribution whose standard deviation is 1/sqrt(in).
func largest(spec model.Spec) float32 { return float32(math.Sqrt(3 / float64(spec.Shape[1]))) }

func word(g *Graph, dims []int, axis int) *Node {
	return ConvertDType(Iota(g, shapes.Make(dtypes.Int32, dims...), axis), dtypes.Uint32)
}

func word32(g *Graph, v uint32) *Node { return Const(g, v) }

// parameters counts elements of all tensors, and of matrices that tokens are multiplied by.
func parameters(c *model.Config) (all, multiplied int) {
	for _, s := range c.Specs() {
		n := 1
		for _, d := range s.Shape {
			n *= d
		}
		all += n
		if len(s.Shape) == 2 && (s.Linear || c.TieEmbeddings) { // an embedding that is not tied is looked up
			multiplied += n
		}
	}
	return all, multiplied
}

// adapterOf is one of rank 16 on all linear layers.
func adapterOf(c *model.Config) (*lora.Adapter, error) {
	var layers []lora.LayerShape
	for _, l := range c.Linears() {
		layers = append(layers, lora.LayerShape(l))
	}
	return lora.New(lora.Config{Rank: 16, Alpha: 32}, layers, 1)
}
