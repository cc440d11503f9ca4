package art_test

import (
	"math"
	"testing"

	"github.com/goart-dev/art"
)

// TestRateSchedule_At follows schedules by hand.
func TestRateSchedule_At(t *testing.T) {
	for name, c := range map[string]struct {
		s    art.RateSchedule
		want []float64
	}{
		"constant": {art.RateSchedule{Rate: 2, Steps: 2, Decay: 1}, []float64{2, 2, 2}},
		"named":    {art.RateSchedule{Rate: 2, Steps: 2, Warmup: 1, Shape: art.ScheduleConstant}, []float64{1, 2, 2}},
		"linear":   {art.RateSchedule{Rate: 1, Steps: 4}, []float64{1, 0.75, 0.5, 0.25, 0.25}},
		"one step": {art.RateSchedule{Rate: 1, Steps: 1, Shape: art.ScheduleCosine}, []float64{1, 1}},
		"warm-up":  {art.RateSchedule{Rate: 1, Steps: 4, Warmup: 0.5, Decay: 0.5}, []float64{0.5, 1, 1, 0.75}},
		"cosine":   {art.RateSchedule{Rate: 1, Steps: 4, Shape: art.ScheduleCosine}, []float64{1, 0.853553, 0.5, 0.146447}},
		"all warm": {art.RateSchedule{Rate: 1, Steps: 2, Warmup: 1}, []float64{0.5, 1}},
	} {
		for step, want := range c.want {
			if got := c.s.At(step); math.Abs(got-want) > 1e-6 {
				t.Errorf("%s: the rate of step %d is %v, want %v", name, step, got, want)
			}
		}
	}
}

// TestSFTConfig_Rates: three calls of four optimizer steps, each of them a part, have the rates of one call of twelve.
func TestSFTConfig_Rates(t *testing.T) {
	for _, shape := range []art.Schedule{art.ScheduleLinear, art.ScheduleCosine} {
		cfg := art.SFTConfig{LearningRate: 2, Warmup: 0.5, Decay: ptr(0.1), Schedule: shape}
		whole := cfg.Rates(12)
		for step := range 12 {
			part := cfg
			part.Part = art.SchedulePart{From: float64(step/4) / 3, To: float64(step/4+1) / 3}
			if got, want := part.Rates(4)(step%4), whole(step); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: the rate of step %d is %v, want %v", shape, step, got, want)
			}
		}
		if got := whole(11); got <= 0.2 || got > 0.51 {
			t.Errorf("%s: the last rate is %v, want a little above 0.2", shape, got)
		}
	}
}

// TestSFTConfig_ScheduleDefaults: a schedule that falls, falls to 0 where nothing is said, and a decay falls linearly.
// No step has a rate of 0, not even the only one of a call.
func TestSFTConfig_ScheduleDefaults(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  art.SFTConfig
		want []float64
	}{
		"nothing":       {art.SFTConfig{}, []float64{1, 1, 1, 1}},
		"constant":      {art.SFTConfig{Schedule: art.ScheduleConstant}, []float64{1, 1, 1, 1}},
		"decay":         {art.SFTConfig{Decay: ptr(0.5)}, []float64{1, 0.875, 0.75, 0.625}},
		"linear":        {art.SFTConfig{Schedule: art.ScheduleLinear}, []float64{1, 0.75, 0.5, 0.25}},
		"linear to 1":   {art.SFTConfig{Schedule: art.ScheduleLinear, Decay: ptr(1.0)}, []float64{1, 1, 1, 1}},
		"cosine":        {art.SFTConfig{Schedule: art.ScheduleCosine}, []float64{1, 0.853553, 0.5, 0.146447}},
		"one of cosine": {art.SFTConfig{Schedule: art.ScheduleCosine}, []float64{1}},
	} {
		c.cfg.LearningRate = 1
		if err := c.cfg.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantEqual(t, name, c.cfg.WithDefaults().WithDefaults(), c.cfg.WithDefaults())
		rates := c.cfg.Rates(len(c.want))
		for step, want := range c.want {
			if got := rates(step); math.Abs(got-want) > 1e-6 {
				t.Errorf("%s: the rate of step %d is %v, want %v", name, step, got, want)
			}
		}
	}
	constant := art.SFTConfig{Schedule: art.ScheduleConstant, Decay: ptr(0.1)}
	wantErr(t, constant.Validate(), art.ErrInvalid, `decay is 0.1, and schedule "constant" has none`)
	preference := art.DPOConfig{Schedule: art.ScheduleConstant, Decay: ptr(0.1)}
	wantErr(t, preference.Validate(), art.ErrInvalid, `decay is 0.1, and schedule "constant" has none`)
	if got := (&art.DPOConfig{Schedule: art.ScheduleCosine}).WithDefaults(); *got.Decay != 0 {
		t.Errorf("preferences: a cosine falls to %v", *got.Decay)
	}
}

// TestRewardStdMultiplier: a line from 0.4 at step 0 to 0.1 at step 3, whose rows come in any order.
func TestRewardStdMultiplier(t *testing.T) {
	row := func(step int, std float64) art.HistoryRow {
		return art.HistoryRow{Split: "train", Step: step, Metrics: map[string]float64{"train/reward_std_dev": std}}
	}
	for _, c := range []struct {
		rows []art.HistoryRow
		want float64
	}{
		{nil, 1},
		{[]art.HistoryRow{row(0, 0.4)}, 1},
		{[]art.HistoryRow{row(3, 0.1), row(0, 0.4), row(2, 0.15), row(2, 0.25), row(1, 0.3)}, 0.25},
		{[]art.HistoryRow{row(0, 0.4), row(1, 0.1), row(2, 0)}, 0},
		{[]art.HistoryRow{row(1, 0), row(2, 1)}, 1},
	} {
		if got := art.RewardStdMultiplier(c.rows); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %v, want %v", c.rows, got, c.want)
		}
	}
}
