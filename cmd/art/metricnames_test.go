package main

import (
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// TestCheckMetrics_Names: a metric that was not logged is an error, which names those that come close.
func TestCheckMetrics_Names(t *testing.T) {
	rows := []art.HistoryRow{
		{Split: "train", Metrics: map[string]float64{"train/right": 1, "train/reward": 1, "loss/entropy": 1}},
		{Split: "val", Metrics: map[string]float64{"val/right": 1}},
	}
	for key, want := range map[string]string{
		"val/right":    "",
		"right":        "--metric right: nothing has logged it; there are train/right and val/right",
		"Right":        "there are train/right and val/right",
		"test/right":   "there are train/right and val/right",
		"entropy":      "there is loss/entropy",
		"val/reward":   "there is train/reward",
		"train/rewrad": ", did you mean train/reward?",
		"rewrad":       ", did you mean train/reward?",
		"cost":         "nothing has logged it; art runs compare lists the metrics",
		"":             "art runs compare lists",
	} {
		err := checkMetrics("metric", []string{"train/reward", key}, rows[:1], rows[1:])
		switch {
		case want == "" && err == nil:
		case err == nil || want == "" || !strings.Contains(err.Error(), want):
			t.Errorf("%q: %v, want %q", key, err, want)
		}
	}
	err := checkMetrics("metric", []string{"right"}, nil)
	if err == nil || !strings.Contains(err.Error(), "nothing is logged yet") {
		t.Error(err)
	}
}
