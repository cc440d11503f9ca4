package credit

import (
	"math"
	"testing"
)

// pairOf is a pair of sequences with two and one trained tokens, and logprobs that make log-ratios of 0.5 and -0.2.
func pairOf() (pair []Sequence, logprobs [][]float32) {
	return []Sequence{
		{IDs: []int32{1, 2, 3}, Trained: []bool{false, true, true}, Logprobs: make([]float32, 3),
			Reference: []float32{0, -1, -2}},
		{IDs: []int32{1, 4}, Trained: []bool{false, true}, Logprobs: make([]float32, 2), Reference: []float32{9, -0.5}},
	}, [][]float32{{7, -0.8, -1.7}, {0, -0.7}}
}

// TestPreference_Numbers: by TRL's formula (DPOTrainer.dpo_loss, loss_type "sigmoid"),
//
//	-logsigmoid(beta·logits)·(1 - label_smoothing) - logsigmoid(-beta·logits)·label_smoothing
//
// with logits = 0.5 - -0.2 = 0.7. Computed with Python's math module: beta·logits is 0.07 without Mean, and
// 5·(0.25 + 0.2) = 2.25 with it.
func TestPreference_Numbers(t *testing.T) {
	for _, c := range []struct {
		loss             Preference
		value            float64
		chosen, rejected float64 // advantages
	}{
		{Preference{Beta: 0.1}, 0.658759556, 0.048250714, -0.048250714},
		{Preference{Beta: 0.1, Smoothing: 0.2}, 0.672759556, 0.028250714, -0.028250714},
		{Preference{Beta: 5, Mean: true}, 0.100206559, 0.238373662, -0.476747324},
	} {
		pair, logprobs := pairOf()
		linear, value := c.loss.Linearize(pair, logprobs)
		wantNear(t, c.value, value, 1e-6, "%+v", c.loss)
		wantNear(t, c.chosen, linear[0].Advantage, 1e-6, "%+v", c.loss)
		wantNear(t, c.rejected, linear[1].Advantage, 1e-6, "%+v", c.loss)
		wantEqual(t, 3.0, linear[0].Weight, "three tokens, of which the trainer takes the mean, and one pair")
		expect(t, pair[0].Advantage == 0, "what is given stays")
	}
}

// TestPreference_Extremes: margins that overflow exp give a finite loss.
func TestPreference_Extremes(t *testing.T) {
	pair, logprobs := pairOf()
	for _, beta := range []float64{1e4, 1e30} {
		_, value := Preference{Beta: beta}.Linearize(pair, logprobs)
		expect(t, value == 0, "the pair is in order")
		swapped := []Sequence{pair[1], pair[0]}
		linear, value := Preference{Beta: beta}.Linearize(swapped, [][]float32{logprobs[1], logprobs[0]})
		wantClose(t, 0.7*beta, value, 1e-6)
		wantClose(t, beta, linear[0].Advantage, 1e-6)
	}
}

func TestPreference_Validate(t *testing.T) {
	wantOK(t, Preference{Beta: 0.1, Smoothing: 0.49}.Validate())
	err := Preference{Beta: math.Inf(1), Smoothing: 0.5}.Validate()
	wantErr(t, err, "beta is +Inf")
	wantErr(t, err, "smoothing is 0.5")
	wantErr(t, Preference{Smoothing: math.NaN()}.Validate(), "beta is 0")
}
