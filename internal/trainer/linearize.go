package trainer

import (
	"context"
	"fmt"
	"slices"

	"github.com/goart-dev/art/grpo"
)

// A loss of pairs of sequences, or of a whole batch, cannot be summed over micro-batches. A [grpo.BatchLoss] is
// therefore replaced, before each optimizer step, by the linear function of the logprobs that has the same gradient at
// the current parameters.

// linearize replaces the loss of the sequences of one optimizer step: it returns them with the derivatives of the loss
// as advantages, and the value of the loss. If that or a derivative is not finite, so that the step must be skipped,
// notFinite are the sequences to blame. It costs a forward pass. Losses that can be summed are left as they are.
func (t *training) linearize(
	ctx context.Context, batch []grpo.Sequence,
) (linear []grpo.Sequence, value float64, notFinite []int, err error) {
	loss, ok := t.run.Loss.(grpo.BatchLoss)
	if !ok {
		return batch, 0, nil, nil
	}
	logprobs, err := t.trainer.logprobs(ctx, t.on.params, batch, t.run.MicroBatch)
	if err != nil {
		return nil, 0, nil, err
	}
	linear, value = loss.Linearize(batch, logprobs)
	return linear, value, blamed(linear, value, logprobs), nil
}

// blamed returns the sequences because of which the value of a linearized loss or one of its derivatives is not finite:
// those with a logprob that is not finite; if there are none, those with such a derivative; if there are none either,
// all of them. It returns nothing when the value and the derivatives are finite.
func blamed(linear []grpo.Sequence, value float64, logprobs [][]float32) []int {
	derivatives := slices.DeleteFunc(indices(len(linear)), func(i int) bool { return finite(linear[i].Advantage) })
	if len(derivatives) == 0 && finite(value) {
		return nil
	}
	inputs := slices.DeleteFunc(indices(len(linear)), func(i int) bool {
		return allFinite(trainedOf(&linear[i], logprobs[i]))
	})
	switch {
	case len(inputs) > 0:
		return inputs
	case len(derivatives) > 0:
		return derivatives
	}
	return indices(len(linear))
}

// withValue returns the metrics of totals. Those of a [grpo.BatchLoss] have the value of the loss too.
func (t *training) withValue(totals *grpo.Totals, value float64) map[string]float64 {
	metrics := totals.Metrics()
	if loss, ok := t.run.Loss.(grpo.BatchLoss); ok {
		metrics[loss.Value().Name] = value
	}
	return metrics
}

// together is how many consecutive sequences of a batch must be in the same optimizer step: 2 for a loss of pairs.
func together(loss grpo.Loss) int {
	if l, ok := loss.(grpo.BatchLoss); ok {
		return l.Together()
	}
	return 1
}

// inseparable cuts a batch into the lists of sequences that must be in the same optimizer step.
func inseparable(batch []grpo.Sequence, loss grpo.Loss) [][]grpo.Sequence {
	return slices.Collect(slices.Chunk(batch, together(loss)))
}

// checkComplete reports a batch that ends within such a list: with half a pair, for example.
func checkComplete(batch []grpo.Sequence, loss grpo.Loss) error {
	if n := together(loss); len(batch)%n != 0 {
		return fmt.Errorf("trainer: %d sequences, the loss takes %d together", len(batch), n)
	}
	return nil
}
