package engine

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/model"
)

// blockTokens is the number of tokens of a block of the KV cache.
const blockTokens = plan.BlockTokens

// cache is the KV cache of all sequences on the device: for each layer a pair of tensors [K, P, C, E], for K KV heads,
// P blocks of C tokens, and head size E. Package schedule says which blocks a sequence has. Block 0 is zero.
//
// Graphs take them as donated inputs and return the updated ones, so that a device can write in place.
type cache struct {
	device compute.Backend
	shape  shapes.Shape      // [K, P, C, E]
	layers []*tensors.Tensor // keys and values of each layer, alternating; nil after a graph that had them failed
	broken error             // why layers could not be set to zero when this was last tried
}

// cacheShape returns the shape of the keys or values of a layer.
func cacheShape(opts Options) shapes.Shape {
	return shapes.Make(opts.CacheType, opts.Config.NumKVHeads, opts.shapes().Blocks, blockTokens, opts.Config.HeadDim)
}

func newCache(opts Options) (*cache, error) {
	k := &cache{device: opts.Device, shape: cacheShape(opts)}
	return k, k.clear(opts.Config.NumLayers)
}

// clear sets the cache to zero.
func (k *cache) clear(layers int) error {
	for _, x := range k.layers {
		_ = x.FinalizeAll() // its memory is needed; an error would not change that
	}
	if k.layers, k.broken = graphx.ZeroTensors(k.device, k.shape, 2*layers); k.broken != nil {
		return fmt.Errorf("engine: cache: %w", k.broken)
	}
	return nil
}

// donate returns the tensors as inputs of a graph. The caller sets layers to the updated ones that the graph returns.
func (k *cache) donate() ([]any, error) {
	if k.layers == nil {
		return nil, fmt.Errorf("engine: the cache was lost, and cannot be made again: %w", k.broken)
	}
	in, err := graphx.Donate(k.device, k.layers)
	if err != nil {
		return nil, fmt.Errorf("engine: cache: %w", err)
	}
	k.layers = nil
	return in, nil
}

// read returns the tensors as inputs of a graph that does not change them.
func (k *cache) read() ([]any, error) {
	if k.layers == nil {
		return nil, fmt.Errorf("engine: the cache was lost, and cannot be made again: %w", k.broken)
	}
	in := make([]any, len(k.layers))
	for i, x := range k.layers {
		in[i] = x
	}
	return in, nil
}

// copyBlock copies block from of the cache to block to.
func (r *runner) copyBlock(from, to int32) error {
	in, err := r.cache.donate()
	if err != nil {
		return err
	}
	in = append(in, tensors.FromScalar(from), tensors.FromScalar(to))
	out, err := r.call(nil, Program{Kind: copyProgram}, r.cache.copyGraph, in)
	if err != nil {
		return err
	}
	r.cache.layers = out
	return nil
}

// copyGraph builds copyBlock.
func (k *cache) copyGraph(in []*Node) []*Node {
	layers, from, to := in[:len(in)-2], in[len(in)-2], in[len(in)-1]
	zero := ZerosLike(from)
	sizes := slices.Clone(k.shape.Dimensions)
	sizes[1] = 1
	out := make([]*Node, len(layers))
	for i, x := range layers {
		block := DynamicSlice(x, []*Node{zero, from, zero, zero}, sizes)
		out[i] = DynamicUpdateSlice(x, block, []*Node{zero, to, zero, zero})
	}
	return out
}

// kvOf returns the cache of each layer, of keys and values in turns.
func kvOf(layers []*Node) (list []model.KV) {
	for i := 0; i < len(layers); i += 2 {
		list = append(list, model.KV{K: layers[i], V: layers[i+1]})
	}
	return list
}

// table is the blocks of the rows of a round [B, M].
func table(rows [][]int32, height, window int) *tensors.Tensor {
	m := window / blockTokens
	flat := make([]int32, height*m)
	for i, blocks := range rows {
		copy(flat[i*m:(i+1)*m], blocks)
	}
	return tensors.FromFlatDataAndDimensions(flat, height, m)
}

func shapeF32(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }

func shapeI32(dims ...int) shapes.Shape { return shapes.Make(dtypes.Int32, dims...) }
