package trainer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
)

// TestTotals_Reductions: two optimizer steps of two micro-batches each, with maxima below 0.
func TestTotals_Reductions(t *testing.T) {
	metrics := []grpo.Metric{
		{Name: "mean"}, {Name: "loss", Reduction: grpo.MeanOverUpdates}, {Name: "max", Reduction: grpo.Maximum},
	}
	all := newTotals(metrics)
	require.Equal(t, map[string]float64{"mean": 0, "loss": 0, "max": 0}, all.logged(), "of no tokens")

	first := newTotals(metrics)
	require.NoError(t, first.addMicroBatch([]float32{6, 0.5, -3}, 3))
	require.NoError(t, first.addMicroBatch([]float32{2, 0.25, -2}, 1))
	require.Equal(t, map[string]float64{"mean": 2, "loss": 0.75, "max": -2}, first.logged())
	second := newTotals(metrics)
	require.NoError(t, second.addMicroBatch([]float32{4, 0.5, -7}, 2))
	require.NoError(t, second.addMicroBatch([]float32{0, 0.75, -5}, 2))

	all.addUpdate(first)
	all.addUpdate(second)
	require.Equal(t, map[string]float64{"mean": 12. / 8, "loss": 1, "max": -2}, all.logged())
	require.Equal(t, map[string]float64{"mean": 2, "loss": 0.75, "max": -2}, first.logged(),
		"what is added stays as it is")
}

func TestTotals_WrongLength(t *testing.T) {
	require.ErrorContains(t, newTotals([]grpo.Metric{{Name: "a"}}).addMicroBatch(make([]float32, 2), 1),
		"2 values of 1 metrics")
}
