package trainer

import (
	"fmt"
	"math"

	"github.com/goart-dev/art/grpo"
)

// totals accumulates the metrics of a loss: the micro-batches of an optimizer step, and then steps.
type totals struct {
	metrics []grpo.Metric
	values  []float64 // sums or maxima, in the order of metrics
	tokens  int       // trained
	updates int
}

// newTotals returns totals of no tokens.
func newTotals(metrics []grpo.Metric) *totals {
	t := &totals{metrics: metrics, values: make([]float64, len(metrics))}
	for i, m := range metrics {
		if m.Reduction == grpo.Maximum {
			t.values[i] = math.Inf(-1)
		}
	}
	return t
}

// addMicroBatch adds the vector of [grpo.BuildLoss] for a micro-batch with that many trained tokens.
func (t *totals) addMicroBatch(values []float32, tokens int) error {
	if len(values) != len(t.metrics) {
		return fmt.Errorf("trainer: %d values of %d metrics", len(values), len(t.metrics))
	}
	for i, v := range values {
		t.combine(i, float64(v))
	}
	t.tokens += tokens
	return nil
}

// addUpdate adds the totals of one optimizer step, which are of the same metrics.
func (t *totals) addUpdate(update *totals) {
	for i, v := range update.values {
		t.combine(i, v)
	}
	t.tokens += update.tokens
	t.updates++
}

func (t *totals) combine(i int, v float64) {
	if t.metrics[i].Reduction == grpo.Maximum {
		t.values[i] = max(t.values[i], v)
	} else {
		t.values[i] += v
	}
}

// logged returns what is logged, by name. All are 0 when there are no tokens.
func (t *totals) logged() map[string]float64 {
	out := make(map[string]float64, len(t.metrics))
	for i, m := range t.metrics {
		switch {
		case t.tokens == 0:
			out[m.Name] = 0
		case m.Reduction == grpo.MeanOverTokens:
			out[m.Name] = t.values[i] / float64(t.tokens)
		case m.Reduction == grpo.MeanOverUpdates:
			out[m.Name] = t.values[i] / float64(max(t.updates, 1))
		default:
			out[m.Name] = t.values[i]
		}
	}
	return out
}
