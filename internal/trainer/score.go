package trainer

import (
	"context"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
)

// score computes the logprobs of the trained tokens of micro-batches, and hands them to read in order. It costs a
// forward pass.
func (t *Trainer) score(
	ctx context.Context, trained []*tensors.Tensor, micro []piece, read func(i int, out *tensors.Tensor) error,
) error {
	f := t.scoreGraph()
	shared, free, err := t.shared(trained)
	if err != nil {
		return err
	}
	defer free()
	results := make([]*tensors.Tensor, len(micro))
	w := work{
		name: "logprobs", pieces: micro, graph: func(int) graphFunction { return f },
		shared: shared, inputs: func(i int) []any { return micro[i].LogprobTensors() },
	}
	err = t.each(ctx, w, func(_, i int, out []*tensors.Tensor) error {
		results[i] = out[0]
		return nil
	})
	for i, out := range results {
		if err == nil {
			err = read(i, out)
		}
		if out != nil {
			finalize([]*tensors.Tensor{out})
		}
	}
	return err
}

// compareLater compares the logprobs of the mini-batches after the first with those of the sampler. The gradient of the
// first one yields its logprobs at no cost. The others need a forward pass before the first update: after it their
// logprobs are those of another policy. They are packed as for their gradients, so that few layouts occur.
func (t *training) compareLater(ctx context.Context, parts [][]grpo.Sequence) error {
	for _, part := range parts {
		logprobs, err := t.trainer.logprobs(ctx, t.on.params, part, t.run.MicroBatch)
		if err != nil {
			return err
		}
		t.report.compare(part, logprobs)
	}
	return nil
}
