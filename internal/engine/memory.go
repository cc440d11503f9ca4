package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/lora"
)

// Memory is what an engine holds on the device, in bytes.
type Memory struct {
	Weights int64 `json:"weights"`
	Cache   int64 `json:"cache"` // keys and values of all slots
	Work    int64 `json:"work"`  // of its largest round, and of copying a prefix from slot to slot
}

// Plan returns what an engine with these options will hold when it serves an adapter of this layout. Graphs are
// compiled, not run. Options need no Params.
func Plan(opts Options, layout *lora.Adapter) (Memory, error) {
	c := opts.Config
	opts.Slots, opts.Context = cmp.Or(opts.Slots, DefaultSlots), cmp.Or(opts.Context, c.MaxPositions)
	params, in := c.Outline()
	m := Memory{Weights: size(in)}
	r := &runner{opts: opts, config: c, params: params, widths: widths(opts.Context)}
	adapter := &Adapter{layout: layout}
	for _, p := range layout.Params() {
		in = append(in, shapeF32(p.Shape...))
		adapter.inputs = append(adapter.inputs, nil) // only their number counts
	}
	k := &cache{device: opts.Device, dims: [4]int{opts.Slots, c.NumKVHeads, opts.Context, c.HeadDim}}
	layers := slices.Repeat([]shapes.Shape{shapeF32(k.dims[:]...)}, 2*c.NumLayers)
	m.Cache = size(layers)
	w, t := opts.Slots, r.widths.Largest()
	round, err := work(opts.Device, func(in []*Node) []*Node { return r.build(adapter, in) },
		slices.Concat(in, layers, []shapes.Shape{shapeI32(w, t), shapeI32(w), shapeI32(w), shapeI32(w), shapeI32(w, 1)}))
	if err != nil {
		return m, err
	}
	copying, err := work(opts.Device, k.copyGraph,
		slices.Concat(layers, []shapes.Shape{shapeI32(), shapeI32(), shapeI32()}))
	m.Work = round + copying + shapeF32(w, c.VocabSize).ByteSize() // the last is what a round returns
	return m, err
}

// work compiles a graph and returns how many bytes a run of it takes.
func work(device compute.Backend, build func(in []*Node) []*Node, in []shapes.Shape) (int64, error) {
	exec, err := NewExec(device, build)
	if err == nil {
		defer exec.Finalize()
		var n int64
		if n, err = graphx.WorkBytes(exec, in); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("engine: plan: %w", err)
}

// size returns the bytes of tensors of these shapes.
func size(list []shapes.Shape) (bytes int64) {
	for _, s := range list {
		bytes += s.ByteSize()
	}
	return bytes
}
