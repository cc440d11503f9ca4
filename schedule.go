package art

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Schedule is the shape of a learning rate over optimizer steps, after a warm-up.
type Schedule string

// Schedules. What is left of the rate at the end is Decay, in each of them.
const (
	ScheduleLinear Schedule = "linear" // falls by the same amount in each step; the default
	ScheduleCosine Schedule = "cosine" // falls along half a cosine: slowly at both ends (Loshchilov and Hutter 2017)
)

// RateSchedule is a learning rate that changes over the steps of a training. For a loop over [Model.Train], whose
// TrainConfig has the rate of one step:
//
//	schedule := art.RateSchedule{Rate: 1e-4, Steps: 50, Warmup: 0.1, Shape: art.ScheduleCosine}
//	model.Train(ctx, groups, &art.TrainConfig{LearningRate: schedule.At(step)})
type RateSchedule struct {
	// Rate is the highest one.
	Rate float64
	// Steps are all of the training. A step beyond them has the rate of the last one.
	Steps int
	// Warmup is the fraction of Steps, 0 to 1, over which the rate rises from 0.
	Warmup float64
	// Decay is the fraction of Rate, 0 to 1, that is left at the end. 1 is constant after the warm-up.
	Decay float64
	// Shape of the decay; "" is [ScheduleLinear].
	Shape Schedule
}

// At returns the rate of a step, counted from 0. With w = Warmup·Steps and n = step + 1,
//
//	Rate·n/w                                n < w
//	Rate·(1 + (Decay - 1)·f)                otherwise, with x = (n - w) / (Steps - w)
//	f = x                                   linear
//	f = (1 - cos(π·x)) / 2                  cosine
func (s RateSchedule) At(step int) float64 {
	n, warmup := float64(min(step+1, s.Steps)), s.Warmup*float64(s.Steps)
	if n < warmup {
		return s.Rate * (n / warmup)
	}
	left := float64(s.Steps) - warmup
	if left <= 0 {
		return s.Rate
	}
	x := (n - warmup) / left
	if s.Shape == ScheduleCosine {
		x = (1 - math.Cos(math.Pi*x)) / 2
	}
	return s.Rate * (1 + (s.Decay-1)*x)
}

// RewardStdMultiplier returns what to multiply a learning rate by as groups come to agree: the standard deviation of
// rewards that a line through its history predicts for the newest step, over the one that it predicts for step 0. It is
// ART's scale_learning_rate_by_reward_std_dev. rows are those of [CheckpointKeeper].History, with the metric
// "train/reward_std_dev"; without it, or where the line begins at 0 or below, the multiplier is 1. It is never
// negative.
func RewardStdMultiplier(rows []HistoryRow) float64 {
	byStep := map[int]mean{}
	for _, row := range rows {
		if x, ok := row.Metrics["train/reward_std_dev"]; ok && finite(x) {
			m := byStep[row.Step]
			m.add(x)
			byStep[row.Step] = m
		}
	}
	steps := slices.Sorted(maps.Keys(byStep))
	if len(steps) < 2 {
		return 1
	}
	var x, y, xx, xy float64
	n := float64(len(steps))
	for _, step := range steps {
		s, v := float64(step), byStep[step]
		x, y, xx, xy = x+s/n, y+v.value()/n, xx+s*s/n, xy+s*v.value()/n
	}
	slope := (xy - x*y) / (xx - x*x)
	start := y - slope*x
	if start <= 0 {
		return 1
	}
	return max(0, start+slope*float64(steps[len(steps)-1])) / start
}

// checkSchedule checks a name.
func checkSchedule(p *problems, s Schedule) {
	if s != "" && s != ScheduleLinear && s != ScheduleCosine {
		*p = append(*p, fmt.Sprintf("unknown schedule %q, want %q or %q", s, ScheduleLinear, ScheduleCosine))
	}
}
