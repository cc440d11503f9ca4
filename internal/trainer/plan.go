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

// adapterCopies are the copies of an adapter at the end of a run, when there are most: parameters and two moments of the old state
// and of the new one here (6), on the device, where updates write in place (3), the last gradient, which is not collected yet, here
// and there (2), and the adapter that serves (1).
const adapterCopies = 12

// Plan returns what training an adapter of this layout will take on sequences of that many tokens, all of which are trained
// on. The graph of a micro-batch is compiled and not run.
func Plan(c *model.Config, layout *lora.Adapter, length int, opts Options) (Memory, error) {
	params, in := c.Outline()
	t := New(AdapterTarget(c, params, layout), opts)
	var adapter int64
	for _, p := range layout.Params() {
		s := shapes.Make(dtypes.Float32, p.Shape...)
		in, adapter = append(in, s), adapter+s.ByteSize()
	}
	length = padLength(length)
	rows := max(1, t.opts.MicroTokens/length)
	in = append(in, microShapes(rows, length)...)
	exec, err := t.gradientGraph(objective{loss: grpo.LossCISPO, lo: 0.8, hi: 1.2})
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

// microShapes are the shapes of microInputs, when every token is trained on.
func microShapes(rows, length int) []shapes.Shape {
	n := rows * length
	number := shapes.Make(dtypes.Float32, n)
	index := shapes.Make(dtypes.Int32, n, 1)
	return []shapes.Shape{shapes.Make(dtypes.Int32, rows, length), index, index, number, number, number, number, shapes.Make(dtypes.Float32)}
}
