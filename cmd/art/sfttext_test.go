package main

import (
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
)

// TestStepText_Skipped: a step whose updates were all skipped has no loss, and says why.
func TestStepText_Skipped(t *testing.T) {
	got := stepText(&art.TrainResult{
		Step: 3, Metrics: map[string]float64{"data/updates_skipped": 1},
		Skipped: []art.Skip{{Reason: credit.ReasonNotFinite, Detail: "its loss is NaN"}},
	}, 2)
	want := "step 3: 2 examples, no finite loss: nothing was learned\n  left out 1, the first: its loss is NaN\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
