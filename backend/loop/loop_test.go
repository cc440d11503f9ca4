package loop_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// TestForward_InvalidArguments: every problem of the arguments is named before the backend is called.
func TestForward_InvalidArguments(t *testing.T) {
	good := loop.Datum{Input: []int32{1, 2}, Targets: []int32{2, loop.NoTarget}}
	policy := loop.Datum{Input: good.Input, Targets: good.Targets, Logprobs: []float32{-1, 0}, Advantages: []float32{1, 0}}
	m := art.NewModel("m", nil)
	if err := m.Register(t.Context(), &arttest.Backend{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		data   []loop.Datum
		loss   credit.Loss
		config loop.LossConfig
		want   string // "" is no error
	}{
		{[]loop.Datum{good}, credit.CrossEntropy, nil, ""},
		{[]loop.Datum{policy}, credit.PPO, loop.LossConfig{"clip_high_threshold": 1.3}, ""},
		{nil, credit.CrossEntropy, nil, "no data"},
		{[]loop.Datum{{}}, credit.CrossEntropy, nil, "datum 0 has no input"},
		{[]loop.Datum{good, {Input: []int32{1}}}, credit.CrossEntropy, nil, "datum 1 has 1 ids and 0 targets"},
		{[]loop.Datum{good}, credit.CISPO, nil, "0 logprobs, want 2"},
		{[]loop.Datum{{Input: make([]int32, 4), K: 1 << 62}}, credit.CrossEntropy, nil, "4 ids and 0 targets"}, // 4·K is 0
		{[]loop.Datum{{Input: []int32{1}, K: math.MinInt}}, credit.CrossEntropy, nil, "has K"},
		{[]loop.Datum{policy}, credit.CrossEntropy, nil, "does not use"},
		{[]loop.Datum{good}, credit.GSPO, nil, "unknown loss"},
		{[]loop.Datum{policy}, credit.DRO, loop.LossConfig{"clip": 1}, `no option "clip"`},
		{[]loop.Datum{policy}, credit.PPO, loop.LossConfig{"clip_low_threshold": 2}, "above clip_high_threshold"},
		{[]loop.Datum{{Input: []int32{1}, Targets: []int32{-2}}}, credit.CrossEntropy, nil, "target -2"},
		{[]loop.Datum{{Input: []int32{1}, Targets: []int32{2, 3}, K: 2}}, credit.CrossEntropy, nil, ""},
	} {
		_, err := loop.ForwardBackward(t.Context(), m, c.data, c.loss, c.config)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%+v: %v", c, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: error is %v, want one with %q", c, err, c.want)
		}
	}
	result, err := loop.Forward(t.Context(), m, []loop.Datum{{
		Input: []int32{1}, Targets: []int32{8}, Logprobs: []float32{-2},
		Advantages: []float32{-1}}}, credit.PPO, loop.LossConfig{"clip_low_threshold": 0})
	if err != nil || math.Abs(result.Loss-math.E) > 1e-6 { // the fake's logprob is -1, and the upper bound of no use
		t.Errorf("result %+v, error %v; want a loss of e", result, err)
	}
	result, err = loop.Forward(t.Context(), m, []loop.Datum{{
		Input: []int32{1}, Targets: []int32{8}, Logprobs: []float32{-2},
		Advantages: []float32{1}}}, credit.PPO, nil)
	if err != nil || math.Abs(result.Loss+1.2) > 1e-6 {
		t.Errorf("result %+v, error %v; want the default of the upper bound, 1.2", result, err)
	}
}

// TestForwardBackwardCustom_Weights: the backend gets cross-entropy whose weights are the negative derivatives.
func TestForwardBackwardCustom_Weights(t *testing.T) {
	m := art.NewModel("m", nil)
	if err := m.Register(t.Context(), &arttest.Backend{}); err != nil {
		t.Fatal(err)
	}
	data := []loop.Datum{{Input: []int32{1, 2}, Targets: []int32{2, 3}, Weights: []float32{5, 5}}}
	derivative := func(logprobs [][]float32) (float64, [][]float32, error) {
		if len(logprobs) != 1 || len(logprobs[0]) != 2 || logprobs[0][0] != -1.25 {
			t.Errorf("logprobs are %v, want those of the fake", logprobs)
		}
		return 7, [][]float32{{0.5, -2}}, nil
	}
	result, err := loop.ForwardBackwardCustom(t.Context(), m, data, derivative)
	if err != nil || result.Loss != 7 {
		t.Fatalf("result %+v, error %v; want the loss 7", result, err)
	}
	step, err := loop.OptimStep(t.Context(), m, loop.DefaultAdamW())
	if err != nil || step.GradNorm != 1.5 { // the fake's gradient is the sum of the derivatives
		t.Errorf("step %+v, error %v; want a gradient of 1.5", step, err)
	}
	if _, err := m.Train(t.Context(), []*art.TrajectoryGroup{{}}, nil); !errors.Is(err, art.ErrInvalid) {
		t.Errorf("Train with an update that is not published: error is %v", err)
	}
}

// TestSnapshot_NotTrained: a snapshot answers with the step that it was made at, and cannot be trained.
func TestSnapshot_NotTrained(t *testing.T) {
	m := art.NewModel("m", nil)
	if err := m.Register(t.Context(), &arttest.Backend{}); err != nil {
		t.Fatal(err)
	}
	s, err := m.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Train(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "snapshot") {
		t.Errorf("Train of a snapshot: error is %v", err)
	}
	if step, err := m.Publish(t.Context(), nil, nil); err != nil || step != 1 || m.Step() != 1 || s.Step() != 0 {
		t.Errorf("Publish: step %d, error %v, the model is at %d and the snapshot at %d", step, err, m.Step(), s.Step())
	}
}
