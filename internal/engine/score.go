package engine

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/model"
)

// scoredRows limits the positions whose logits are in memory at once.
const scoredRows = 128

// Score returns the logprobs of all ids but the first, each given those before it, under the model with an adapter,
// which may be nil. Its error wraps [ErrNotFinite] if one of them is NaN or infinite. They equal the logprobs of
// sampling bit for bit on devices that compute each row independently of the others. Shape legend: T tokens, D hidden.
func Score(device compute.Backend, c *model.Config, params *model.Params, a *Adapter, ids []int32) ([]float32, error) {
	if err := checkScored(c, ids); err != nil {
		return nil, err
	}
	t := len(ids) - 1
	if t == 0 {
		return nil, nil
	}
	r := &runner{config: c, params: params}
	exec, err := NewExec(device, func(in []*Node) []*Node {
		f, rest := r.forward(a, in)
		tokens, target := rest[0], rest[1]
		hidden, _ := f.Hidden(model.Input{Tokens: tokens})
		hidden = Reshape(hidden, t, c.HiddenSize)
		var parts []*Node
		for first := 0; first < t; first += scoredRows {
			rows := AxisRange(first, min(first+scoredRows, t))
			parts = append(parts, f.TokenLogProbs(Slice(hidden, rows), Slice(target, rows)))
		}
		return []*Node{Concatenate(parts, 0)}
	})
	if err != nil {
		return nil, fmt.Errorf("engine: score: %w", err)
	}
	defer exec.Finalize()
	out, err := exec.Call(append(r.weights(a), tensors.FromFlatDataAndDimensions(ids[:t:t], 1, t),
		tensors.FromFlatDataAndDimensions(ids[1:], t, 1))...)
	if err != nil {
		return nil, fmt.Errorf("engine: score: %w", err)
	}
	defer func() { _ = out[0].FinalizeAll() }() // an error of the read is the one to report
	logprobs, err := tensors.CopyFlatData[float32](out[0])
	if err != nil {
		return nil, fmt.Errorf("engine: score: %w", err)
	}
	for i, lp := range logprobs {
		if err := checkFinite(i, lp); err != nil {
			return nil, err
		}
	}
	return logprobs, nil
}

// checkScored refuses ids that cannot be scored.
func checkScored(c *model.Config, ids []int32) error {
	switch n := len(ids); {
	case n == 0:
		return errors.New("engine: there are no tokens to score")
	case n > c.MaxPositions:
		return fmt.Errorf("%w to be scored: %d tokens, the context has %d", ErrTooLong, n, c.MaxPositions)
	}
	return (&Request{Prompt: ids}).check(Options{Config: c, Context: c.MaxPositions + 1})
}
