package trainer

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// Memory is what training an adapter takes besides the weights, in bytes.
type Memory struct {
	Adapter int64 `json:"adapter"` // its copies: old and new state with moments, on the device, gradients
	Work    int64 `json:"work"`    // of all micro-batches that are computed at once
}

// adapterCopies are the copies of an adapter at the end of a run, when there are most. On the host: parameters and two
// moments of the old state and of the new one (6), the last gradient, which is not collected yet (1), and the adapter
// that answers requests (1). On the device: the state, which updates overwrite (3), and the last gradient (1).
const adapterCopies = 12

// Plan returns what training an adapter of this layout will take on sequences of that many tokens, all of which are
// trained on. The graph of a micro-batch is compiled and not run.
func Plan(c *model.Config, layout *lora.Adapter, length int, opts Options) (Memory, error) {
	params, in := c.Outline()
	t := New(AdapterTarget(c, params, layout), opts)
	var adapter int64
	for _, p := range layout.Params() {
		s := shapes.Make(dtypes.Float32, p.Shape...)
		in, adapter = append(in, s), adapter+s.ByteSize()
	}
	in = append(in, fullLayout(length, t.opts.MicroTokens).Shapes()...)
	exec, err := t.gradientGraph(grpo.PolicyLoss{})
	if err != nil {
		return Memory{}, err
	}
	defer exec.Finalize()
	work, err := graphx.WorkBytes(exec, in)
	if err != nil {
		return Memory{}, fmt.Errorf("trainer: plan: %w", err)
	}
	return Memory{Adapter: adapterCopies * adapter, Work: int64(t.opts.Workers) * (work + adapter)}, nil
}

// fullLayout is that of a micro-batch of as many sequences of a length as it may have, with every token trained.
func fullLayout(length, microTokens int) grpo.Layout {
	length = padLength(length)
	l := grpo.Layout{Rows: max(1, microTokens/length), Length: length}
	l.Trained = l.Tokens()
	return l
}

// EstimateMemory bounds from above what [Plan] returns, in bytes, from sizes alone: it compiles nothing. params is the
// number of the adapter's parameters, workers that of micro-batches at once, length the tokens of a sequence. For L
// layers, Q heads of size E, hidden size H, MLP of I (of all experts, which are all computed), vocabulary V, and n =
// rows · length tokens of a micro-batch:
//
//	adapter = 12 · 4·params                                             see adapterCopies
//	work    = workers · 4·(n·L·(8H + 8QE + 4I) + 1.5·n·length·L·Q + 512·V + params)
//
// Attention scores grow with the square of the length, and dominate for long sequences. Where they are soft-capped they
// count 2.5, since the capped ones are kept too.
func EstimateMemory(c *model.Config, params float64, workers, length int) (adapter, work float64) {
	layout := fullLayout(length, microTokens(c))
	n, t, l := float64(layout.Tokens()), float64(layout.Length), float64(c.NumLayers)
	q := float64(c.NumHeads)
	inner := float64(max(c.IntermediateSize, c.NumExperts*c.MoEIntermediateSize))
	token := l * (8*float64(c.HiddenSize) + 8*q*float64(c.HeadDim) + 4*inner)
	scores := 1.5
	if c.AttentionSoftCap != 0 {
		scores = 2.5
	}
	work = 4 * (n*token + scores*n*t*l*q + 512*float64(c.VocabSize) + params)
	return adapterCopies * 4 * params, float64(workers) * work
}
