package engine

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/model"
)

// cache holds keys [W, K, E, S] and values [W, K, S, E] of all slots, a pair of tensors for each layer. Behind the cached
// tokens of a slot it is zero.
//
// A graph reads it and returns what is new; the host writes that into the cache. On a device whose buffers are shared
// with the host, such as the CPU, nothing else is copied.
type cache struct {
	slots, heads, dim, capacity int // W, K, E, S
	keys, values                []*tensors.Tensor
}

func newCache(device compute.Backend, c *model.Config, slots, capacity int) (*cache, error) {
	k := &cache{slots: slots, heads: c.NumKVHeads, dim: c.HeadDim, capacity: capacity}
	for range c.NumLayers {
		key, err := tensors.FromShapeForBackend(device, 0, shapes.Make(dtypes.Float32, slots, k.heads, k.dim, k.capacity))
		if err != nil {
			return nil, err
		}
		value, err := tensors.FromShapeForBackend(device, 0, shapes.Make(dtypes.Float32, slots, k.heads, k.capacity, k.dim))
		if err != nil {
			return nil, err
		}
		k.keys, k.values = append(k.keys, key), append(k.values, value)
	}
	return k, nil
}

// write stores the keys and values of a round, [W, K, E, T] and [W, K, T, E], of one layer.
func (k *cache) write(layer int, rows []row, width int, key, value []float32) error {
	err := tensors.MutableFlatData(k.keys[layer], func(to []float32) {
		for w, r := range rows {
			for c := range k.heads * k.dim {
				at := w*k.heads*k.dim + c
				copy(to[at*k.capacity+r.start:], key[at*width:at*width+len(r.tokens)])
			}
		}
	})
	if err != nil {
		return err
	}
	return tensors.MutableFlatData(k.values[layer], func(to []float32) {
		for w, r := range rows {
			for h := range k.heads {
				at := w*k.heads + h
				copy(to[(at*k.capacity+r.start)*k.dim:], value[at*width*k.dim:(at*width+len(r.tokens))*k.dim])
			}
		}
	})
}

// copyPrefix makes the first n tokens of one slot those of another, which may be itself, and clears the rest of it.
func (k *cache) copyPrefix(from, to, n int) {
	for l := range k.keys {
		tensors.MustMutableFlatData(k.keys[l], func(x []float32) {
			for c := range k.heads * k.dim {
				replace(rowOf(x, to*k.heads*k.dim+c, k.capacity), rowOf(x, from*k.heads*k.dim+c, k.capacity), n)
			}
		})
		tensors.MustMutableFlatData(k.values[l], func(x []float32) {
			for h := range k.heads {
				replace(rowOf(x, to*k.heads+h, k.capacity*k.dim), rowOf(x, from*k.heads+h, k.capacity*k.dim), n*k.dim)
			}
		})
	}
}

func rowOf(x []float32, i, n int) []float32 { return x[i*n : (i+1)*n] }

func replace(to, from []float32, n int) {
	copy(to[:n], from[:n])
	clear(to[n:])
}
