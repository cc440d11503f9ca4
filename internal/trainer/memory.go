package trainer

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/pack"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// Plan returns what training adapters of this layout, nil for all weights, will take on sequences of that many tokens,
// all of which are trained on. The graph of a micro-batch is compiled and not run.
func Plan(c *model.Config, layout *lora.Adapter, length int, opts Options) (plan.Memory, error) {
	of := func(c *model.Config) (Target, []shapes.Shape) {
		params, in := c.Outline()
		if layout == nil {
			return FullTarget(c), in
		}
		layout := layout.Of(c.HasBlock)
		for _, p := range layout.Params() {
			in = append(in, shapes.Make(dtypes.Float32, p.Shape...))
		}
		return AdapterTarget(c, params, layout), append(in, layout.NormShapes()...)
	}
	target, _ := of(c)
	t := New(target, opts)
	m := t.plan.Memory(t.sizes, length)
	m.Programs = float64(t.opts.ProgramBytes)
	var err error
	if m.Work, err = t.planWork(length, of); err != nil || layout == nil || layout.NumNorms() == 0 {
		return m, err
	}
	n, err := lora.NewNorms(opts.Device) // before any micro-batch
	if err != nil {
		return m, err
	}
	defer n.Finalize()
	norms, err := n.WorkBytes(layout)
	m.Work = max(m.Work, float64(norms))
	return m, err
}

// planWork returns the bytes of the micro-batches that are computed at once. of returns the target of a model, with the
// shapes of the inputs that all micro-batches have in common.
func (t *Trainer) planWork(length int, of func(*model.Config) (Target, []shapes.Shape)) (float64, error) {
	return t.sizes.Work(length, t.opts.Alone, func(l pack.Layout, _ int) (float64, error) {
		graph := func(c *model.Config) (int64, error) {
			part := *t
			target, in := of(c)
			part.target = target
			build := part.lossGraph(grpo.PolicyLoss{}, true, t.sizes.Recompute).build
			return graphx.WorkOfGraph(t.opts.Device, build, slices.Concat(in, inputShapes(l)))
		}
		c := t.plan.Config
		bytes, err := int64(0), error(nil)
		if _, alike := c.FirstLayers(graphx.FewLayers); alike {
			bytes, err = graphx.WorkOfLayers(c.NumLayers, func(layers int) (int64, error) {
				few, _ := c.FirstLayers(layers)
				return graph(few)
			})
		} else {
			bytes, err = graph(c)
		}
		if err != nil {
			return 0, fmt.Errorf("trainer: plan: %w", err)
		}
		return float64(bytes) + 4*t.plan.Params, nil // and the gradient
	})
}

// plentiful are the sizes of the options, where memory is plenty.
func (t *Trainer) plentiful() plan.Sizes {
	o := t.opts
	return t.plan.WithDefaults(plan.Sizes{
		Workers: o.Workers, MicroTokens: o.MicroTokens, Recompute: o.Recompute, Narrow: o.Narrow,
	})
}

// Sizes are those of the next call.
func (t *Trainer) Sizes() plan.Sizes { return t.sizes }

// Fit chooses sizes with which the next calls take no more than so many bytes, for sequences of up to length tokens,
// and returns what they take: see [plan.Training.Fit].
func (t *Trainer) Fit(length int, bytes float64) (takes float64, ok bool) {
	places := t.places()
	t.sizes, t.room, takes, ok = t.plan.Fit(plan.Limits{
		Sizes: t.plentiful(), FixedTokens: t.opts.MicroTokens > 0, Devices: len(places),
		Programs: func(part float64) float64 {
			most := int64(part * float64(t.opts.ProgramBytes))
			for _, p := range places {
				p.programs.Limit(most)
			}
			return float64(max(0, most-t.programs.Bytes()))
		},
	}, length, bytes)
	return takes, ok
}

// Lowered reports whether the sizes are smaller than those of the options, or fewer programs kept.
func (t *Trainer) Lowered() bool {
	return t.sizes != t.plentiful() || t.programs.Most() < t.opts.ProgramBytes
}

// recomputes reports whether layers of a micro-batch, one of all, are computed again for their gradient. Sizes are
// chosen for the largest micro-batches that there may be; one that fits as it is keeps its layers, which takes less
// time.
func (t *Trainer) recomputes(p piece, all []piece) bool {
	if !t.sizes.Recompute || t.room == 0 {
		return t.sizes.Recompute
	}
	atOnce := float64(min(t.sizes.Workers, len(all)))
	if t.large(p) {
		atOnce = 1
	}
	// A tenth is left for what others begin meanwhile.
	return atOnce*t.plan.Pass(p.Layout) > 0.9*t.room
}
