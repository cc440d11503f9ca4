package trainer

import (
	"context"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
)

// Logprobs returns the logprobs of the trained tokens of a batch under the parameters of a state: a list for each
// sequence, per token, 0 where it is not trained. limit bounds the sequences of a micro-batch; 0 is no bound.
func (t *Trainer) Logprobs(
	ctx context.Context, state *State, batch []grpo.Sequence, limit int,
) ([][]float32, error) {
	for i := range batch {
		if err := t.target.check(&batch[i]); err != nil {
			return nil, err
		}
	}
	if len(batch) == 0 {
		return nil, nil
	}
	params, err := t.upload(state, state.Params)
	if err != nil {
		return nil, err
	}
	defer finalize(params)
	return t.logprobs(ctx, params, batch, limit)
}

// logprobs is Logprobs under parameters on the device, of a batch with sequences that are checked.
func (t *Trainer) logprobs(
	ctx context.Context, params []*tensors.Tensor, batch []grpo.Sequence, limit int,
) ([][]float32, error) {
	micro, err := t.microBatches(batch, limit)
	if err != nil {
		return nil, err
	}
	var flat []float32 // in the order in which microBatches packs: by length
	err = t.score(ctx, params, micro, func(i int, out *tensors.Tensor) error {
		return tensors.ConstFlatData(out, func(values []float32) {
			flat = append(flat, values[:micro[i].Tokens.NumReal]...)
		})
	})
	if err != nil {
		return nil, err
	}
	return spread(batch, flat), nil
}

// spread hands out values of trained tokens, which come in order of the length of their sequences.
func spread(batch []grpo.Sequence, flat []float32) [][]float32 {
	order := make([]int, len(batch))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return batch[a].NumInputs() - batch[b].NumInputs() })
	out := make([][]float32, len(batch))
	for _, i := range order {
		out[i] = make([]float32, len(batch[i].IDs))
		for j, trained := range batch[i].Trained {
			if trained {
				out[i][j], flat = flat[0], flat[1:]
			}
		}
	}
	return out
}
