package reward

import "github.com/goart-dev/art"

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
// A score that is NaN or infinite makes the reward so, even where its weight is 0: such a trajectory is not trained
// on, and its metric shows which part it was. Parts of the same name are added up in one metric. A nil t is left
// alone.
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
