package trainer

import (
	"context"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
)

// Logprobs returns the logprobs of the trained tokens of a batch under the parameters of a state: a list for each
// sequence, per token, 0 where it is not trained. limit bounds the sequences of a micro-batch; 0 is no bound.
func (t *Trainer) Logprobs(ctx context.Context, state *State, batch []grpo.Sequence, limit int) ([][]float32, error) {
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

// logprobs is Logprobs under parameters on the device, of a batch with sequences that are checked. It costs a forward
// pass.
func (t *Trainer) logprobs(
	ctx context.Context, params []*tensors.Tensor, batch []grpo.Sequence, limit int,
) ([][]float32, error) {
	micro, err := t.microBatches(bare(batch), limit)
	if err != nil {
		return nil, err
	}
	f := graphFunction{graphName{}, func(in []*Node) []*Node {
		f, _, in := t.target.split(in)
		read, _ := readTokens(in)
		hidden, _ := f.Hidden(read.Input) // logits are computed at the positions of trained tokens only
		return []*Node{f.TokenLogProbs(Gather(Reshape(hidden, -1, f.Config.HiddenSize), read.position), read.target)}
	}}
	shared, free, err := t.shared(params)
	if err != nil {
		return nil, err
	}
	defer free()
	results := make([]*tensors.Tensor, len(micro))
	w := work{
		name: "logprobs", pieces: micro, graph: func(int) graphFunction { return f },
		shared: shared, inputs: func(i int) []any { return logprobInputs(micro[i].MicroBatch) },
	}
	err = t.each(ctx, w, func(_, i int, out []*tensors.Tensor) error {
		results[i] = out[0]
		return nil
	})
	all := perToken(batch)
	for i, out := range results {
		if err == nil {
			err = micro[i].spread(batch, out, all)
		}
		if out != nil {
			finalize([]*tensors.Tensor{out})
		}
	}
	return all, err
}

// bare returns sequences without logprobs of other policies: those that are not finite are no reason to compute none.
func bare(batch []grpo.Sequence) []grpo.Sequence {
	batch = slices.Clone(batch)
	for i := range batch {
		batch[i].Old, batch[i].Reference = nil, nil
	}
	return batch
}

// perToken returns a list of zeros for each sequence, per token.
func perToken(batch []grpo.Sequence) [][]float32 {
	out := make([][]float32, len(batch))
	for i := range batch {
		out[i] = make([]float32, len(batch[i].IDs))
	}
	return out
}

// spread copies a value [N] of each trained token to where the token is.
func (p *piece) spread(batch []grpo.Sequence, x *tensors.Tensor, to [][]float32) error {
	return tensors.ConstFlatData(x, func(values []float32) {
		for _, i := range p.sequences {
			for j, trained := range batch[i].Trained {
				if trained {
					to[i][j], values = values[0], values[1:]
				}
			}
		}
	})
}
