package trainer

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// Memory is what training an adapter takes besides the weights, in bytes.
type Memory struct {
	Adapter int64 `json:"adapter"` // its copies: old and new state with moments, on the device, gradients, kept outputs
	Work    int64 `json:"work"`    // of the micro-batches that are computed at once: several usual ones, or a shared one
	// Programs are the compiled graphs that are kept, at most: see Options.ProgramBytes.
	Programs int64 `json:"programs"`
}

// adapterCopies are the copies of an adapter at the end of a run, when there are most. On the host: parameters and two
// moments of the old state and of the new one (6), and the adapter that answers requests (1). On the device: the state,
// which updates overwrite (3), and the last gradient (1).
const adapterCopies = 11

// keptCopies are those that the CPU device keeps the memory of for the outputs of the next step, as measured
// (internal/bench/memory -programs): mostKept bytes at most.
const keptCopies, mostKept = 5, 128 << 20

// Of those on the device: the state (3), the last gradient (1), and the adapter that answers requests (1).
const adapterOnDevice = 5

// normCopies are those of the norms of DoRA: the sampler's, and the trainer's.
const normCopies = 2

// Of a training of all weights. On the host: parameters and moments of the old state and of the new one (6). On the
// device: the state (3), the last gradient (1), what answers requests and what is going to (2), and one that requests
// in progress may still have (1).
const (
	fullCopies = 13
	// fullMore are those that are not there yet when a training begins.
	fullMore = 8

	// Of the two those that a device holds; the others are memory of the machine, which a GPU does not have.
	fullOnDevice     = 7
	fullMoreOnDevice = 5
)

// copies are the bytes of those that a training adds to the memory of a device, or more.
func (t *Target) copies(on graphx.Profile) float64 {
	if t.full {
		return copiesOf(on, fullMore, fullMoreOnDevice) * 4 * t.numParams
	}
	return adapterBytes(on, 4*t.numParams)
}

// adapterBytes are those of the copies of an adapter in the memory of a device.
func adapterBytes(on graphx.Profile, adapter float64) float64 {
	if on.OwnMemory {
		return adapterOnDevice * adapter
	}
	return adapterCopies*adapter + min(keptCopies*adapter, mostKept)
}

// copiesOf are the copies in the memory of a device: all, or those that it holds where that is memory of its own.
func copiesOf(on graphx.Profile, all, own float64) float64 {
	if on.OwnMemory {
		return own
	}
	return all
}

// Plan returns what training an adapter of this layout will take on sequences of that many tokens, all of which are
// trained on. The graph of a micro-batch is compiled and not run.
func Plan(c *model.Config, layout *lora.Adapter, length int, opts Options) (Memory, error) {
	t := New(AdapterTarget(c, params(c), layout), opts)
	adapter := int64(4 * layout.NumParams())
	work, err := t.planWork(adapter, length, func(c *model.Config) (Target, []shapes.Shape) {
		_, in := c.Outline()
		layout := layout.Of(c.HasBlock)
		for _, p := range layout.Params() {
			in = append(in, shapes.Make(dtypes.Float32, p.Shape...))
		}
		return AdapterTarget(c, params(c), layout), append(in, layout.NormShapes()...)
	})
	if err != nil {
		return Memory{}, err
	}
	norms, normWork, err := planNorms(layout, opts.Device)
	return Memory{
		Adapter:  int64(adapterBytes(graphx.Profile{}, float64(adapter))) + normCopies*norms,
		Work:     max(work, normWork),
		Programs: t.opts.ProgramBytes,
	}, err
}

// PlanFull is [Plan] of a training of all weights, whose copies are in place of those of an adapter.
func PlanFull(c *model.Config, length int, opts Options) (Memory, error) {
	_, in := c.Outline()
	var weights int64
	for _, s := range in {
		weights += s.ByteSize()
	}
	t := New(FullTarget(c), opts)
	work, err := t.planWork(weights, length, func(c *model.Config) (Target, []shapes.Shape) {
		_, in := c.Outline()
		return FullTarget(c), in
	})
	return Memory{Adapter: fullCopies * weights, Work: work, Programs: t.opts.ProgramBytes}, err
}

// planWork returns the bytes of the micro-batches that are computed at once. of returns the target of a model, with the
// shapes of the inputs that all micro-batches have in common, and gradient the bytes of the gradient of one.
func (t *Trainer) planWork(
	gradient int64, length int, of func(*model.Config) (Target, []shapes.Shape),
) (int64, error) {
	graph := func(c *model.Config, l grpo.Layout) (int64, error) {
		part := *t
		target, in := of(c)
		part.target = target
		build := part.lossGraph(grpo.PolicyLoss{}, true, t.sizes.Recompute).build
		return graphx.WorkOfGraph(t.opts.Device, build, slices.Concat(in, l.Shapes()))
	}
	work := func(l grpo.Layout) (bytes int64, err error) {
		c := t.target.config
		if _, alike := c.FirstLayers(graphx.FewLayers); alike {
			bytes, err = graphx.WorkOfLayers(c.NumLayers, func(layers int) (int64, error) {
				few, _ := c.FirstLayers(layers)
				return graph(few, l)
			})
		} else {
			bytes, err = graph(c, l)
		}
		if err != nil {
			return 0, fmt.Errorf("trainer: plan: %w", err)
		}
		return bytes + gradient, nil
	}
	most, err := work(fullLayout(length, t.sizes.MicroTokens))
	if most *= int64(t.sizes.Workers); err != nil {
		return 0, err
	}
	if l, ok := sharedLayout(length, t.sizes); ok && t.shares() {
		alone, err := work(l)
		if err != nil {
			return 0, err
		}
		most = max(most, alone)
	}
	return most, nil
}

// planNorms returns the bytes of the norms of DoRA, and what computing them takes, before any micro-batch.
func planNorms(layout *lora.Adapter, device compute.Backend) (norms, work int64, err error) {
	if layout.NumNorms() == 0 {
		return 0, 0, nil
	}
	for _, s := range layout.NormShapes() {
		norms += s.ByteSize()
	}
	n, err := lora.NewNorms(device)
	if err != nil {
		return 0, 0, err
	}
	defer n.Finalize()
	work, err = n.WorkBytes(layout)
	return norms, work, err
}

// params are the weights of a model without their values.
func params(c *model.Config) *model.Params {
	p, _ := c.Outline()
	return p
}

// sharedLayout is that of a large micro-batch of sequences of a length that share half of it: of as many tokens as it
// may have, though numbers of rows are rounded. Shorter sequences may fill it. There is none where two sequences have
// more tokens than that.
func sharedLayout(length int, s Sizes) (l grpo.Layout, ok bool) {
	half := padLength((length + 1) / 2)
	rows := s.halves(length, half)
	if rows < 2 {
		return grpo.Layout{}, false
	}
	l = grpo.Layout{Rows: 1, Length: half}
	l.Branches[0] = grpo.Branches{Rows: rows, Length: half, Keys: 2 * half}
	l.Trained = l.Tokens()
	return l, true
}

// halves are how many second halves there is room for beside the first.
func (s Sizes) halves(length, half int) int { return max(0, (s.shared(length)-half)/half) }

// LargestGroup is the number of sequences of a length that are computed at once if they share their first half; below 2
// none are.
func (s Sizes) LargestGroup(length int) int {
	most := s.halves(length, padLength((length+1)/2))
	n := most
	for padRows(n) > most {
		n--
	}
	return n
}

// fullLayout is that of a micro-batch of as many sequences of a length as it may have, with every token trained.
func fullLayout(length, microTokens int) grpo.Layout {
	length = padLength(length)
	l := grpo.Layout{Rows: Sizes{MicroTokens: microTokens}.rows(length), Length: length}
	l.Trained = l.Tokens()
	return l
}
