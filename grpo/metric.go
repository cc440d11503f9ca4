package grpo

import (
	"fmt"
	"math"
)

// Metric declares a quantity that a loss measures: the name under which it is logged, and how the values of
// micro-batches are combined.
type Metric struct {
	Name      string
	Reduction Reduction
	// Formula, Unit and Healthy are for people: how it is computed, "" for a number without a unit, and what it should be,
	// "" where nothing can be said.
	Formula, Unit, Healthy string
}

// Reduction says how the values of micro-batches become the one that is logged.
type Reduction int

const (
	// MeanOverTokens is their sum, divided by the number of trained tokens. The default.
	MeanOverTokens Reduction = iota
	// MeanOverUpdates is their sum, divided by the number of optimizer steps: for what is divided by a denominator
	// already, such as the loss.
	MeanOverUpdates
	// Maximum is the largest one.
	Maximum
)

// Totals accumulates the metrics of a loss: the micro-batches of an optimizer step, and then steps.
type Totals struct {
	metrics []Metric
	values  []float64 // sums or maxima, in the order of metrics
	tokens  int       // trained
	updates int
}

// NewTotals returns totals of no tokens.
func NewTotals(metrics []Metric) *Totals {
	t := &Totals{metrics: metrics, values: make([]float64, len(metrics))}
	for i, m := range metrics {
		if m.Reduction == Maximum {
			t.values[i] = math.Inf(-1)
		}
	}
	return t
}

// AddMicroBatch adds the vector of [BuildLoss] for a micro-batch with that many trained tokens.
func (t *Totals) AddMicroBatch(values []float32, tokens int) error {
	if len(values) != len(t.metrics) {
		return fmt.Errorf("grpo: %d values of %d metrics", len(values), len(t.metrics))
	}
	for i, v := range values {
		t.combine(i, float64(v))
	}
	t.tokens += tokens
	return nil
}

// AddUpdate adds the totals of one optimizer step, which are of the same metrics.
func (t *Totals) AddUpdate(update *Totals) {
	for i, v := range update.values {
		t.combine(i, v)
	}
	t.tokens += update.tokens
	t.updates++
}

func (t *Totals) combine(i int, v float64) {
	if t.metrics[i].Reduction == Maximum {
		t.values[i] = max(t.values[i], v)
	} else {
		t.values[i] += v
	}
}

// Metrics returns what is logged, by name. All are 0 when there are no tokens.
func (t *Totals) Metrics() map[string]float64 {
	out := make(map[string]float64, len(t.metrics))
	for i, m := range t.metrics {
		switch {
		case t.tokens == 0:
			out[m.Name] = 0
		case m.Reduction == MeanOverTokens:
			out[m.Name] = t.values[i] / float64(t.tokens)
		case m.Reduction == MeanOverUpdates:
			out[m.Name] = t.values[i] / float64(max(t.updates, 1))
		default:
			out[m.Name] = t.values[i]
		}
	}
	return out
}
