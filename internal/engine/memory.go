package engine

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/lora"
)

// Memory is what an engine holds on the device, in bytes.
type Memory struct {
	Weights int64 `json:"weights"`
	Cache   int64 `json:"cache"` // keys and values
	Work    int64 `json:"work"`  // of its largest round, and of copying a block of the cache
	// Programs are the compiled graphs that are kept, at most.
	Programs int64 `json:"programs"`
}

// Plan returns what an engine with these options will hold when it serves an adapter of this layout. Graphs are
// compiled, not run. Options need no Params.
func Plan(opts Options, layout *lora.Adapter) (Memory, error) {
	c := opts.Config
	opts = opts.withDefaults()
	_, weights := c.Outline()
	m := Memory{Weights: size(weights), Programs: programBytes(opts)}
	m.Cache = size(slices.Repeat([]shapes.Shape{cacheShape(opts)}, 2*c.NumLayers))
	var err error
	if _, alike := c.FirstLayers(graphx.FewLayers); !alike {
		m.Work, err = planWork(opts, layout)
		return m, err
	}
	m.Work, err = graphx.WorkOfLayers(c.NumLayers, func(layers int) (int64, error) {
		few := opts
		few.Config, _ = c.FirstLayers(layers)
		return planWork(few, layout.Of(few.Config.HasBlock))
	})
	return m, err
}

// planWork returns the bytes of the largest round, and of copying a block of the cache.
func planWork(opts Options, layout *lora.Adapter) (int64, error) {
	c := opts.Config
	params, in := c.Outline()
	r := &runner{opts: opts, config: c, params: params, widths: widths(opts)}
	adapter := &Adapter{layout: layout}
	for _, p := range layout.Params() {
		in = append(in, shapeF32(p.Shape...))
	}
	in = append(in, layout.NormShapes()...)
	adapter.inputs = make([]*tensors.Tensor, len(in)-len(params.Names)) // only their number counts
	k := &cache{device: opts.Device, shape: cacheShape(opts)}
	layers := slices.Repeat([]shapes.Shape{k.shape}, 2*c.NumLayers)
	blocks := windows(opts).Largest() / BlockTokens
	var rounds int64
	for _, s := range largestRounds(opts) {
		round, err := work(opts.Device, func(in []*Node) []*Node { return r.build(adapter, in, false) },
			slices.Concat(in, layers, []shapes.Shape{shapeI32(s.rows, s.width), shapeI32(s.rows), shapeI32(s.rows),
				shapeI32(s.rows, blocks), shapeI32(s.rows, 1)}))
		if err != nil {
			return 0, err
		}
		rounds = max(rounds, round+shapeF32(s.rows, c.VocabSize).ByteSize()) // the last is what a round returns
	}
	copying, err := work(opts.Device, k.copyGraph, slices.Concat(layers, []shapes.Shape{shapeI32(), shapeI32()}))
	return rounds + copying, err
}

// largestRounds returns the rounds of which one takes most memory: the widest prompt, and all slots.
func largestRounds(opts Options) []roundShape {
	widest := widths(opts).Largest()
	if opts.FewShapes {
		return []roundShape{{opts.Slots, widest}}
	}
	high := heights(opts).Fit(max(1, budget(opts)/widest))
	return []roundShape{{high, widest}, {opts.Slots, 1}}
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
