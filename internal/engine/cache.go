package engine

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/model"
)

// cache is the KV cache of all slots on the device: for each layer a pair of tensors [W, K, S, E], for W slots of S
// tokens, K KV heads and head size E. They are zero after the cached tokens of a slot.
//
// Graphs take them as donated inputs and return the updated ones, so that a device can write in place.
type cache struct {
	device compute.Backend
	dims   [4]int            // W, K, S, E
	layers []*tensors.Tensor // keys and values of each layer, alternating; nil after a graph that had them failed
	prefix *Exec
}

func newCache(device compute.Backend, c *model.Config, slots, capacity int) (*cache, error) {
	k := &cache{device: device, dims: [4]int{slots, c.NumKVHeads, capacity, c.HeadDim}}
	var err error
	if k.prefix, err = NewExec(device, k.copyGraph); err != nil {
		return nil, fmt.Errorf("engine: cache: %w", err)
	}
	return k, k.clear(c.NumLayers)
}

// clear sets the cache of all slots to zero.
func (k *cache) clear(layers int) error {
	exec, err := NewExec(k.device, func(g *Graph) []*Node {
		out := make([]*Node, 2*layers)
		for i := range out {
			out[i] = Zeros(g, shapeF32(k.dims[:]...))
		}
		return out
	})
	if err == nil {
		defer exec.Finalize()
		k.layers, err = exec.Call()
	}
	if err != nil {
		return fmt.Errorf("engine: cache: %w", err)
	}
	return nil
}

// donate returns the tensors as inputs of a graph. The caller sets layers to the updated ones that the graph returns.
func (k *cache) donate() ([]any, error) {
	if k.layers == nil {
		return nil, fmt.Errorf("engine: cache: it was lost")
	}
	in := make([]any, len(k.layers))
	for i, x := range k.layers {
		var err error
		if in[i], err = DonateTensorBuffer(x, k.device, 0); err != nil {
			return nil, fmt.Errorf("engine: cache: %w", err)
		}
	}
	k.layers = nil
	return in, nil
}

// copyPrefix copies the first n tokens of slot from to slot to, which may be the same, and clears the rest of it.
func (k *cache) copyPrefix(from, to, n int) error {
	in, err := k.donate()
	if err != nil {
		return err
	}
	out, err := k.prefix.Call(append(in, int32(from), int32(to), int32(n))...)
	if err != nil {
		return fmt.Errorf("engine: cache: %w", err)
	}
	k.layers = out
	return nil
}

// copyGraph builds copyPrefix.
func (k *cache) copyGraph(in []*Node) []*Node {
	layers, from, to, n := in[:len(in)-3], in[len(in)-3], in[len(in)-2], in[len(in)-1]
	zero := ZerosLike(from)
	row := []int{1, k.dims[1], k.dims[2], k.dims[3]}
	kept := LessThan(Iota(from.Graph(), shapeI32(row...), 2), BroadcastToDims(n, row...))
	out := make([]*Node, len(layers))
	for i, x := range layers {
		source := DynamicSlice(x, []*Node{from, zero, zero, zero}, row)
		out[i] = DynamicUpdateSlice(x, Where(kept, source, ZerosLike(source)), []*Node{to, zero, zero, zero})
	}
	return out
}

func shapeF32(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }

func shapeI32(dims ...int) shapes.Shape { return shapes.Make(dtypes.Int32, dims...) }
