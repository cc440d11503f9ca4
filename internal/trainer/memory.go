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
	Work    int64 `json:"work"`    // of the micro-batches that are computed at once: several usual ones, or a shared one
}

// adapterCopies are the copies of an adapter at the end of a run, when there are most. On the host: parameters and two
// moments of the old state and of the new one (6), the last gradient, which is not collected yet (1), and the adapter
// that answers requests (1). On the device: the state, which updates overwrite (3), and the last gradient (1).
const adapterCopies = 12

// Plan returns what training an adapter of this layout will take on sequences of that many tokens, all of which are
// trained on. The graph of a micro-batch is compiled and not run.
func Plan(c *model.Config, layout *lora.Adapter, length int, opts Options) (Memory, error) {
	t := New(AdapterTarget(c, params(c), layout), opts)
	exec, err := t.lossGraph(grpo.PolicyLoss{}, true)
	if err != nil {
		return Memory{}, err
	}
	defer exec.Finalize()
	var adapter int64
	for _, p := range layout.Params() {
		adapter += shapes.Make(dtypes.Float32, p.Shape...).ByteSize()
	}
	work := func(l grpo.Layout) (int64, error) {
		_, in := c.Outline()
		for _, p := range layout.Params() {
			in = append(in, shapes.Make(dtypes.Float32, p.Shape...))
		}
		bytes, err := graphx.WorkBytes(exec, append(in, l.Shapes()...))
		if err != nil {
			return 0, fmt.Errorf("trainer: plan: %w", err)
		}
		return bytes + adapter, nil
	}
	most, err := work(fullLayout(length, t.opts.MicroTokens))
	if most *= int64(t.opts.Workers); err != nil {
		return Memory{}, err
	}
	if l, ok := sharedLayout(length, t.opts); ok {
		alone, err := work(l)
		if err != nil {
			return Memory{}, err
		}
		most = max(most, alone)
	}
	return Memory{Adapter: adapterCopies * adapter, Work: most}, nil
}

// params are the weights of a model without their values.
func params(c *model.Config) *model.Params {
	p, _ := c.Outline()
	return p
}

// sharedLayout is that of a large micro-batch of sequences of a length that share half of it. There is none where two
// of them have more tokens than it may have.
func sharedLayout(length int, opts Options) (l grpo.Layout, ok bool) {
	half := padLength((length + 1) / 2)
	rows := (sharedPieces*opts.MicroTokens - half) / half
	if opts.FewShapes || opts.Alone || rows < 2 {
		return grpo.Layout{}, false
	}
	l = grpo.Layout{Rows: 1, Length: half}
	l.Branches[0] = grpo.Branches{Rows: rows, Length: half, Keys: 2 * half}
	l.Trained = l.Tokens()
	return l, true
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
//	work    = max(workers · pass(n), pass(3 · MicroTokens))             the latter of tokens that are shared
//	pass(n) = 4·(n·L·(8H + 8QE + 4I) + 1.5·n·length·L·Q + 512·V + params)
//
// Attention scores grow with the square of the length, and dominate for long sequences. Where they are soft-capped they
// count 2.5, since the capped ones are kept too.
func EstimateMemory(c *model.Config, params float64, workers, length int) (adapter, work float64) {
	micro := microTokens(c)
	work = float64(workers) * passBytes(c, params, fullLayout(length, micro).Tokens(), length)
	if l, ok := sharedLayout(length, Options{MicroTokens: micro}); ok {
		work = max(work, passBytes(c, params, max(l.Tokens(), sharedPieces*micro), length))
	}
	return adapterCopies * 4 * params, work
}

// EstimateSequence bounds from above what one sequence alone takes, in bytes.
func EstimateSequence(c *model.Config, params float64, length int) float64 {
	return passBytes(c, params, padLength(length), length)
}

// passBytes is pass(n) of [EstimateMemory].
func passBytes(c *model.Config, params float64, n, length int) float64 {
	l, q := float64(c.NumLayers), float64(c.NumHeads)
	inner := float64(max(c.IntermediateSize, c.NumExperts*c.MoEIntermediateSize))
	token := l * (8*float64(c.HiddenSize) + 8*q*float64(c.HeadDim) + 4*inner)
	scores := 1.5
	if c.AttentionSoftCap != 0 {
		scores = 2.5
	}
	return 4 * (float64(n)*(token+scores*float64(padLength(length))*l*q) + 512*float64(c.VocabSize) + params)
}
