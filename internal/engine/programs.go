package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/lora"
)

// Program is a graph of an engine, of one shape, for the adapters of one layout.
type Program struct {
	Kind  string `json:"kind"` // PromptProgram or DecodeProgram
	Rows  int    `json:"rows"`
	Width int    `json:"width"` // tokens of a row; of decode the most
	// Window is the number of tokens of a row that it attends to; 0 are those of a prompt that it computes from its
	// beginning.
	Window int `json:"window"`
	// Prefix is, in a decode program whose rows share the first tokens of their sequences, the room for these: see Groups.
	// Window is then what a row has behind them.
	Prefix int `json:"prefix,omitempty"`
	// Groups is the number of prefixes, each of which Rows/Groups rows share.
	Groups int `json:"groups,omitempty"`
	// Cuts are those that requests of decode may use.
	Cuts sampling.Cuts `json:"cuts"`
}

// Kinds of programs.
const (
	PromptProgram = "prompt" // computes Width tokens of each row, of prompts, or one that the host samples after
	DecodeProgram = "decode" // computes and samples up to Width tokens of each row, in a loop

	storeProgram = "store" // stores what a loop over rows has computed
	copyProgram  = "copy"  // copies a block of the cache
)

// Programs lists all graphs that an engine with these options compiles for the base model, and again for the adapters
// of each layout. Its cache has two more: one that clears it, and one that copies a block; and one for each shape of
// decode whose loop reads rows. opts needs Config; other fields may have their defaults.
func Programs(opts Options) (list []Program) {
	opts = opts.withDefaults()
	shapes := opts.shapes()
	if opts.FewShapes {
		for _, r := range shapes.Rounds {
			if r.Width > 1 { // one token takes the smallest window
				list = append(list, Program{Kind: PromptProgram, Rows: r.Rows, Width: r.Width})
			}
		}
	}
	for _, r := range shapes.Rounds {
		for _, window := range windowsOf(shapes, opts.FewShapes, r.Width) {
			list = append(list, Program{Kind: PromptProgram, Rows: r.Rows, Width: r.Width, Window: window})
		}
	}
	if opts.DecodeSteps == 1 {
		return list
	}
	for _, rows := range shapes.Heights {
		var whole []Program // rows that share nothing
		for _, window := range shapes.DecodeWindows {
			whole = append(whole, Program{Kind: DecodeProgram, Rows: rows, Width: opts.DecodeSteps, Window: window})
		}
		for _, p := range append(whole, sharedRows(shapes, opts, rows)...) {
			for _, cuts := range []sampling.Cuts{{}, {TopP: true}, {TopK: true}, {TopP: true, TopK: true}} {
				p.Cuts = cuts
				list = append(list, p)
			}
		}
	}
	return list
}

// KeptLayouts is how many layouts of adapters keep all of their programs, beside the base model, on a device that takes
// long to compile. Tenants of a server whose adapters are alike in rank and layers need one; of more layouts, those
// programs are compiled again that were not used for longest.
const KeptLayouts = 4

// MostPrograms is how many graphs an engine with these options keeps on a device that takes long to compile:
//
//	(1 + KeptLayouts) · len(Programs) + S + 1
//
// with S shapes of decode, whose loop may read rows, and one that copies a block of the cache.
func MostPrograms(opts Options) int {
	list, stores := Programs(opts), map[Program]bool{}
	for _, p := range list {
		if p.Kind == DecodeProgram {
			stores[Program{Kind: storeProgram, Rows: p.Rows, Width: p.Width, Window: p.Window}] = true
		}
	}
	return (1+KeptLayouts)*len(list) + len(stores) + 1
}

// Warm compiles all graphs for an adapter, nil for the base model, and for the adapters that share its layout, so that
// no request waits for a compilation. Each is run once, with nothing to compute. Requests are answered between them.
func (e *Engine) Warm(ctx context.Context, a *Adapter) error {
	for _, p := range Programs(e.opts) {
		err := e.do(ctx, func(l *loop) error {
			err := l.runner.warm(a, p)
			if err != nil {
				l.lost()
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// do has the loop, which owns the device, call f between two rounds.
func (e *Engine) do(ctx context.Context, f func(l *loop) error) error {
	done := make(chan error, 1)
	select {
	case e.tasks <- func(l *loop) { done <- f(l) }:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-e.quit:
		return ErrClosed
	}
	return <-done // it has begun
}

// warm runs a program on rows without tokens. The cache stays as it is.
func (r *runner) warm(a *Adapter, p Program) error {
	if p.Kind == DecodeProgram {
		plan := decodePlan{Program: p, calls: make([]decodeCall, p.Rows), common: make([]int, p.Groups)}
		state, _ := r.decodeInputs(plan.calls, p.Window)
		out, err := r.decodeTo(a, plan, state)
		finalize(out)
		return err
	}
	in, err := r.fixed(a)
	if err != nil {
		return err
	}
	zeros := func(dims ...int) *tensors.Tensor { return tensors.FromShape(shapeI32(dims...)) }
	out, err := r.round(a, p, append(in, zeros(p.Rows, p.Width), zeros(p.Rows), zeros(p.Rows),
		table(nil, p.Rows, stored(p.Window, p.Width)), zeros(p.Rows, 1)))
	if err != nil {
		return err
	}
	n := len(out) - 2*r.config.NumLayers
	r.cache.layers = out[n:]
	finalize(out[:n])
	return nil
}

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
