package grpo

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/goart-dev/art/grpo/credit"
	"github.com/stretchr/testify/require"
)

// torchGolden is testdata/golden.json, which testdata/golden.py writes.
type torchGolden struct {
	Losses []struct {
		Loss        credit.Loss
		Epsilon     *float64
		EpsilonHigh *float64 `json:"epsilon_high"`
		tokens
		Denominator, Value float64
		Grad               []float64
	}
	AdamW []struct {
		LR, Beta1, Beta2, Eps float64
		WeightDecay           float64 `json:"weight_decay"`
		MaxNorm               float64 `json:"max_norm"`
		Start                 [][]float64
		Grads                 [][][]float64
		Norms                 []float64
		After                 [][][]float64
	}
}

func readTorchGolden(t *testing.T) torchGolden {
	t.Helper()
	content, err := os.ReadFile("testdata/golden.json")
	require.NoError(t, err)
	var golden torchGolden
	require.NoError(t, json.Unmarshal(content, &golden))
	require.NotEmpty(t, golden.Losses)
	require.NotEmpty(t, golden.AdamW)
	return golden
}
