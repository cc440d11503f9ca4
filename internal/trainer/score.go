package trainer

import (
	"context"
	"fmt"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
)

// score computes the logprobs of the trained tokens of micro-batches, and hands them to f in order. It costs a forward
// pass.
func (t *Trainer) score(
	ctx context.Context, trained []*tensors.Tensor, micro []piece, f func(i int, out *tensors.Tensor) error,
) error {
	exec, err := t.scoreGraph()
	if err != nil {
		return err
	}
	shared, free, err := t.shared(trained)
	if err != nil {
		return err
	}
	defer free()
	results := make([]*tensors.Tensor, len(micro))
	err = t.each(ctx, micro, func(i int) (err error) {
		if results[i], err = exec.Call1(slices.Concat(shared, micro[i].LogprobTensors())...); err != nil {
			return fmt.Errorf("logprobs: %w", err)
		}
		return nil
	})
	for i, out := range results {
		if err == nil {
			err = f(i, out)
		}
		if out != nil {
			finalize([]*tensors.Tensor{out})
		}
	}
	return err
}

// scoreGraph returns the graphs of the logprobs of a micro-batch.
func (t *Trainer) scoreGraph() (*Exec, error) {
	if t.scores != nil {
		return t.scores, nil
	}
	e, err := NewExec(t.opts.Device, func(in []*Node) *Node {
		forward, _, in := t.target.split(in)
		read, _ := grpo.LogprobInputsOf(in)
		return tokenLogprobs(forward, read)
	})
	if err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	e.SetMaxCache(-1) // bounded by the layouts of microBatches
	t.scores = e
	return e, nil
}

// shared lists the inputs that all micro-batches have in common: the frozen tensors, the trained ones, and the norms of
// those, which free releases.
func (t *Trainer) shared(trained []*tensors.Tensor) (in []any, free func(), err error) {
	norms, err := t.normsOf(trained)
	if err != nil {
		return nil, nil, err
	}
	for _, x := range slices.Concat(t.target.frozen, trained, norms) {
		in = append(in, x)
	}
	return in, func() { finalize(norms) }, nil
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
