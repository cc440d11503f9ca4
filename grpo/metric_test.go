package grpo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTotals_Reductions: two optimizer steps of two micro-batches each, with maxima below 0.
func TestTotals_Reductions(t *testing.T) {
	metrics := []Metric{{Name: "mean"}, {Name: "loss", Reduction: MeanOverUpdates}, {Name: "max", Reduction: Maximum}}
	all := NewTotals(metrics)
	require.Equal(t, map[string]float64{"mean": 0, "loss": 0, "max": 0}, all.Metrics(), "of no tokens")

	first := NewTotals(metrics)
	require.NoError(t, first.AddMicroBatch([]float32{6, 0.5, -3}, 3))
	require.NoError(t, first.AddMicroBatch([]float32{2, 0.25, -2}, 1))
	require.Equal(t, map[string]float64{"mean": 2, "loss": 0.75, "max": -2}, first.Metrics())
	second := NewTotals(metrics)
	require.NoError(t, second.AddMicroBatch([]float32{4, 0.5, -7}, 2))
	require.NoError(t, second.AddMicroBatch([]float32{0, 0.75, -5}, 2))

	all.AddUpdate(first)
	all.AddUpdate(second)
	require.Equal(t, map[string]float64{"mean": 12. / 8, "loss": 1, "max": -2}, all.Metrics())
	require.Equal(t, map[string]float64{"mean": 2, "loss": 0.75, "max": -2}, first.Metrics(),
		"what is added stays as it is")
}

func TestTotals_WrongLength(t *testing.T) {
	require.ErrorContains(t, NewTotals([]Metric{{Name: "a"}}).AddMicroBatch(make([]float32, 2), 1),
		"2 values of 1 metrics")
}
