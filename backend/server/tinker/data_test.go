package tinker

import (
	"slices"
	"testing"

	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// TestConvertData_NoTarget: a target of -1 is none, which is not counted, and other negative ones are refused.
func TestConvertData_NoTarget(t *testing.T) {
	request := func(targets ...int64) *tinkerwire.ForwardRequest {
		return &tinkerwire.ForwardRequest{Loss: "cross_entropy", Data: []tinkerwire.Datum{{
			Input:  tinkerwire.NewInput(slices.Repeat([]int32{1}, len(targets))),
			Inputs: map[string]tinkerwire.Tensor{"target_tokens": tinkerwire.NewInts(targets)},
		}}}
	}
	limits := &Limits{Datums: 1, Tokens: 10, Targets: 1}
	data, _, err := convertData(request(-1, 5, -1), limits)
	if err != nil || !slices.Equal(data[0].Targets, []int32{loop.NoTarget, 5, loop.NoTarget}) {
		t.Fatalf("%v: %v", data, err)
	}
	result := &loop.ForwardResult{Loss: 1, Logprobs: [][]float32{{0, -1, 0}}}
	if out := output(data, result, request()); out.Metrics["targets:sum"] != 1 {
		t.Errorf("the metrics are %v", out.Metrics)
	}
	for _, id := range []int64{-2, -100, 1 << 40} {
		if _, _, err := convertData(request(id), limits); err == nil {
			t.Errorf("the target %d is taken", id)
		}
	}
}

// TestOutput_OneMask: the metrics of a pass are of the targets in the loss, whatever the other positions have.
func TestOutput_OneMask(t *testing.T) {
	result := &loop.ForwardResult{Logprobs: [][]float32{{-3, -3, -3, -1}}}
	for name, d := range map[string]loop.Datum{
		"targets":    {Targets: []int32{-1, -1, -1, 5}, Advantages: []float32{1, 2, -3, 1}},
		"weights":    {Targets: []int32{5, 5, 5, 5}, Weights: []float32{0, 0, 0, 2}, Advantages: []float32{1, 2, -3, 1}},
		"advantages": {Targets: []int32{5, 5, 5, 5}, Advantages: []float32{0, 0, 0, 1}},
	} {
		d.Logprobs = []float32{-9, 0, -7, -1}
		got := output([]loop.Datum{d}, result, &tinkerwire.ForwardRequest{Loss: string(credit.PPO)}).Metrics
		for metric, want := range map[string]float64{
			"targets:sum": 1, "action_tokens:sum": 1, "logprob_gap:sum": 0, "ratio:min": 1, "ratio:max": 1,
		} {
			if got[metric] != want {
				t.Errorf("%s: %s is %v, want %v", name, metric, got[metric], want)
			}
		}
	}
}
