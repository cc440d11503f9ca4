package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/lora"
)

// Plan returns what an engine with these options will hold when it serves an adapter of this layout, with the work of
// its graphs, which are compiled, not run. Options need no Params.
func Plan(opts Options, layout *lora.Adapter) (plan.Memory, error) {
	c := opts.Config
	opts = opts.withDefaults()
	m := opts.sampling().Memory()
	m.Programs = cmp.Or(float64(opts.ProgramBytes), m.Programs)
	work, err := int64(0), error(nil)
	if _, alike := c.FirstLayers(graphx.FewLayers); alike {
		work, err = graphx.WorkOfLayers(c.NumLayers, func(layers int) (int64, error) {
			few := opts
			few.Config, _ = c.FirstLayers(layers)
			return planWork(few, layout.Of(few.Config.HasBlock))
		})
	} else {
		work, err = planWork(opts, layout)
	}
	m.Work = float64(work)
	return m, err
}

// planWork returns the bytes of the largest round, and of copying a block of the cache.
func planWork(opts Options, layout *lora.Adapter) (int64, error) {
	c := opts.Config
	params, in := c.Outline()
	r := &runner{opts: opts, config: c, params: params, shapes: opts.shapes()}
	adapter := &Adapter{layout: layout}
	for _, p := range layout.Params() {
		in = append(in, shapeF32(p.Shape...))
	}
	in = append(in, layout.NormShapes()...)
	adapter.inputs = make([]*tensors.Tensor, len(in)-len(params.Names)) // only their number counts
	k := &cache{device: opts.Device, shape: cacheShape(opts)}
	layers := slices.Repeat([]shapes.Shape{k.shape}, 2*c.NumLayers)
	blocks := r.shapes.Windows.Largest() / blockTokens
	var rounds int64
	for _, s := range largestRounds(opts, r.shapes) {
		round, err := work(opts.Device, func(in []*Node) []*Node { return r.build(adapter, in, false) },
			slices.Concat(in, layers, []shapes.Shape{shapeI32(s.Rows, s.Width), shapeI32(s.Rows), shapeI32(s.Rows),
				shapeI32(s.Rows, blocks), shapeI32(s.Rows, 1)}))
		if err != nil {
			return 0, err
		}
		rounds = max(rounds, round+shapeF32(s.Rows, c.VocabSize).ByteSize()) // the last is what a round returns
	}
	copying, err := work(opts.Device, k.copyGraph, slices.Concat(layers, []shapes.Shape{shapeI32(), shapeI32()}))
	return rounds + copying, err
}

// largestRounds returns the rounds of which one takes most memory: the widest prompt, and all slots.
func largestRounds(opts Options, sizes plan.Shapes) []plan.Round {
	widest := sizes.Widths.Largest()
	if opts.FewShapes {
		return []plan.Round{{Rows: opts.Slots, Width: widest}}
	}
	high := sizes.Heights.Fit(max(1, sizes.Budget/widest))
	return []plan.Round{{Rows: high, Width: widest}, {Rows: opts.Slots, Width: 1}}
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
