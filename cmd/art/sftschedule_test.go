package main

import (
	"math"
	"testing"

	"github.com/goart-dev/art"
)

// TestSFTVerb_Rates: steps that are trained one by one have the rates of the schedule of the whole run.
func TestSFTVerb_Rates(t *testing.T) {
	for _, schedule := range []art.Schedule{art.ScheduleConstant, art.ScheduleLinear, art.ScheduleCosine} {
		s := &sftVerb{cfg: art.SFTConfig{Schedule: schedule, LearningRate: 1, Warmup: 0.25}, steps: 8}
		want := art.RateSchedule{Rate: 1, Steps: 8, Warmup: 0.25, Shape: schedule}
		for step := range 8 {
			cfg := s.cfg
			cfg.Part = s.part(step)
			got := cfg.Rates(1)(0)
			if math.Abs(got-want.At(step)) > 1e-12 || got <= 0 {
				t.Errorf("%s: the rate of step %d is %v, want %v", schedule, step, got, want.At(step))
			}
		}
	}
}
