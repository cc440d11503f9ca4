package trainer

import (
	"context"
	"fmt"
	"slices"

	"github.com/goart-dev/art/grpo"
)

// linearize prepares the sequences of one optimizer step for a [grpo.BatchLoss], and returns its value, and those
// because of which it is not finite. It costs a forward pass. With other losses there is nothing to do.
func (t *training) linearize(
	ctx context.Context, part []grpo.Sequence,
) (linear []grpo.Sequence, value float64, spoilt []int, err error) {
	loss, ok := t.run.Loss.(grpo.BatchLoss)
	if !ok {
		return part, 0, nil, nil
	}
	logprobs, err := t.trainer.logprobs(ctx, t.on.params, part, t.run.MicroBatch)
	if err != nil {
		return nil, 0, nil, err
	}
	linear, value = loss.Linearize(part, logprobs)
	return linear, value, spoiling(linear, value, logprobs), nil
}

// spoiling returns the sequences because of which the value of a linearised loss or a derivative is not finite: those
// with such a logprob, or else those with such a derivative, or else all. There are none when both are finite.
func spoiling(linear []grpo.Sequence, value float64, logprobs [][]float32) []int {
	steep := slices.DeleteFunc(indices(len(linear)), func(i int) bool { return finite(linear[i].Advantage) })
	if len(steep) == 0 && finite(value) {
		return nil
	}
	unlikely := slices.DeleteFunc(indices(len(linear)), func(i int) bool {
		return allFinite(trainedOf(&linear[i], logprobs[i]))
	})
	switch {
	case len(unlikely) > 0:
		return unlikely
	case len(steep) > 0:
		return steep
	}
	return indices(len(linear))
}

// measured returns the metrics of totals, and the value of a [grpo.BatchLoss].
func (t *training) measured(totals *grpo.Totals, value float64) map[string]float64 {
	metrics := totals.Metrics()
	if loss, ok := t.run.Loss.(grpo.BatchLoss); ok {
		metrics[loss.Value().Name] = value
	}
	return metrics
}

// together is the number of consecutive sequences that the optimizer sees in one step.
func together(loss grpo.Loss) int {
	if l, ok := loss.(grpo.BatchLoss); ok {
		return l.Together()
	}
	return 1
}

// units cuts a batch into what belongs to one optimizer step.
func units(batch []grpo.Sequence, loss grpo.Loss) [][]grpo.Sequence {
	return slices.Collect(slices.Chunk(batch, together(loss)))
}

// checkUnits reports a batch that ends within a unit.
func checkUnits(batch []grpo.Sequence, loss grpo.Loss) error {
	if n := together(loss); len(batch)%n != 0 {
		return fmt.Errorf("trainer: %d sequences, the loss takes %d together", len(batch), n)
	}
	return nil
}
