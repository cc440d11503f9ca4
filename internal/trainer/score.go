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
	ctx context.Context, trained []*tensors.Tensor, micro []grpo.MicroBatch, f func(i int, out *tensors.Tensor) error,
) error {
	exec, err := t.scoreGraph()
	if err != nil {
		return err
	}
	shared := t.shared(trained)
	results := make([]*tensors.Tensor, len(micro))
	err = t.each(ctx, len(micro), func(i int) (err error) {
		inputs := microInputs(&micro[i], 1)[:scoreInputs]
		if results[i], err = exec.Call1(append(shared[:len(shared):len(shared)], inputs...)...); err != nil {
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

// scoreInputs is the number of microInputs that logprobs depend on, the first ones: ids, position, target.
const scoreInputs = 3

// scoreGraph returns the graphs of the logprobs of a micro-batch.
func (t *Trainer) scoreGraph() (*Exec, error) {
	if t.scores != nil {
		return t.scores, nil
	}
	frozen := len(t.target.frozen)
	e, err := NewExec(t.opts.Device, func(in []*Node) *Node {
		trained, micro := in[frozen:len(in)-scoreInputs], in[len(in)-scoreInputs:]
		return tokenLogprobs(t.target.forward(in[:frozen], trained), micro[0], micro[1], micro[2])
	})
	if err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	e.SetMaxCache(-1) // bounded by the shapes that pack makes
	t.scores = e
	return e, nil
}

// shared lists the inputs that all micro-batches have in common: the frozen tensors and the trained ones.
func (t *Trainer) shared(trained []*tensors.Tensor) (in []any) {
	for _, x := range slices.Concat(t.target.frozen, trained) {
		in = append(in, x)
	}
	return in
}

// compareLater adds mini-batches to what a report says of the policy that is being trained. The gradient of the first
// one does that at no cost. Those of the later ones come after updates: only a forward pass before shows the policy
// that sampled. They are packed as their gradients will be, so that few shapes occur.
func (t *Trainer) compareLater(
	ctx context.Context, trained []*tensors.Tensor, parts [][]grpo.Sequence, most int, report *Report,
) error {
	for _, part := range parts {
		micro, err := t.pack(part, most)
		if err != nil {
			return err
		}
		err = t.score(ctx, trained, micro, func(i int, out *tensors.Tensor) error {
			return report.compare(&micro[i].Tokens, out)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
