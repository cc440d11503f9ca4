package reward

import (
	"math"

	"github.com/goart-dev/art"
)

// Part is one of the scores that a reward is made of.
type Part struct {
	// Name of its metric, which is "reward_" and the name: "format" is logged as train/reward_format.
	Name   string
	Weight float64
	Score  float64
}

// Combine sets the reward of t to the weighted sum of the parts, records the score of each, without its weight, as a
// metric of t, and returns the reward.
//
//	reward = sum of weight x score
//
// A score that is NaN or infinite makes the reward so, even where its weight is 0: such a trajectory is not trained on,
// and its metric shows which part it was. Parts of the same name are added up in one metric. A nil t is left alone.
func Combine(t *art.Trajectory, parts ...Part) float64 {
	scores := map[string]float64{}
	reward := 0.0
	for _, p := range parts {
		scores["reward_"+p.Name] += p.Score
		reward += p.Weight * p.Score
	}
	if t == nil {
		return reward
	}
	if t.Metrics == nil {
		t.Metrics = map[string]float64{}
	}
	for key, score := range scores {
		t.Metrics[key] = score
	}
	t.Reward = reward
	return reward
}

// Ramp rises in a line from 0 at from to 1 at to, and stays 0 and 1 beyond; where to is less than from it falls. NaN
// gives 0.
//
//	Ramp = min(1, max(0, (x - from) / (to - from)))
func Ramp(x, from, to float64) float64 {
	if from == to { // a step
		from = math.Nextafter(to, math.Inf(-1))
	}
	y := (x - from) / (to - from)
	if math.IsNaN(y) {
		return 0
	}
	return min(1, max(0, y))
}

// SoftOverlong is the length penalty of DAPO (Yu et al. 2025, arXiv 2503.14476, equation 13): 0 up to limit - buffer
// tokens, from there in a line to -1 at limit, and -1 beyond.
//
//	            0                                  length <= limit - buffer
//	penalty =   (limit - buffer - length)/buffer   limit - buffer < length <= limit
//	            -1                                 limit < length
//
// DAPO used a limit of 20,480 and a buffer of 4,096. The limit should not be above the MaxTokens that replies are
// sampled with, otherwise what is cut off goes unpunished. A buffer of 0 or less is a step behind limit.
func SoftOverlong(length, limit, buffer int) float64 {
	if buffer <= 0 {
		limit, buffer = limit+1, 1
	}
	return -Ramp(float64(length), float64(limit-buffer), float64(limit))
}

// SampledTokens counts the tokens that the trained model wrote in t, over all histories. nil has none.
func SampledTokens(t *art.Trajectory) int {
	if t == nil {
		return 0
	}
	n := 0
	for _, s := range t.Samples() {
		n += len(s.IDs)
	}
	return n
}
