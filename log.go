package art

import (
	"context"
	"maps"
	"math"
	"strings"
)

// Log stores groups and metrics under split ("train", "val") and the model's step. Logging the same pair again replaces
// what was there. groups and metrics may be nil.
//
// To the given metrics it adds those of [Metrics], unless they are given,
//
//	split/reward          mean over the trajectories
//	split/reward_std_dev  mean over the groups of two or more of their population standard deviation
//	split/exception_rate  failures / (failures + trajectories)
//	split/duration        mean seconds, over the trajectories whose Duration is set
//	split/<k>             mean over the trajectories that have the metric k
//	split/group_<k>       mean over the groups that have the metric k
//
// A given key without "/" gets the split as prefix. NaN is left out of means and of what is stored.
//
// It returns [ErrNotRegistered], [ErrUnsupported] when the backend is no [Logger], and [ErrInvalid] for a split that
// cannot be the name of a folder.
func (m *Model) Log(ctx context.Context, split string, groups []*TrajectoryGroup, metrics map[string]float64) error {
	logger, err := capability[Logger](m, "log", "art.Logger, such as backend/local")
	if err != nil {
		return err
	}
	var p problems
	p.folderName("split", split)
	if err := p.err("log", `use a plain word such as "train" or "val"`); err != nil {
		return err
	}
	all := Metrics(groups...)
	maps.Copy(all, metrics)
	return logger.Log(ctx, m, split, m.Step(), groups, underSplit(split, all))
}

// underSplit gives keys without a section that of the split, and drops NaN.
func underSplit(split string, metrics map[string]float64) map[string]float64 {
	out := make(map[string]float64, len(metrics))
	for key, value := range metrics {
		if math.IsNaN(value) {
			continue
		}
		if !strings.Contains(key, "/") {
			key = split + "/" + key
		}
		out[key] = value
	}
	return out
}

// Metrics computes what [Model.Log] adds for groups, under keys without a split, such as "reward". What has no value is
// absent.
func Metrics(groups ...*TrajectoryGroup) map[string]float64 {
	named, own := means{}, means{}
	failures, trajectories := 0, 0
	for _, g := range groups {
		if g == nil {
			continue
		}
		failures += len(g.Failures)
		named.addAll("group_", g.Metrics)
		var rewards []float64
		for _, t := range g.Trajectories {
			if t == nil {
				continue
			}
			trajectories++
			rewards = append(rewards, t.Reward)
			named.addAll("", t.Metrics)
			own.add("reward", t.Reward)
			if t.Duration > 0 {
				own.add("duration", t.Duration.Seconds())
			}
		}
		if len(rewards) > 1 {
			own.add("reward_std_dev", populationStd(rewards))
		}
	}
	out := named.values()
	maps.Copy(out, own.values())
	if n := failures + trajectories; n > 0 {
		out["exception_rate"] = float64(failures) / float64(n)
	}
	return out
}

// mean is a running mean that leaves out NaN.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(x float64) {
	if !math.IsNaN(x) {
		m.sum += x
		m.n++
	}
}

// value returns the mean, 0 of nothing.
func (m mean) value() float64 { return m.sum / float64(max(m.n, 1)) }

// means are running means by key.
type means map[string]mean

func (m means) add(key string, x float64) {
	v := m[key]
	v.add(x)
	m[key] = v
}

func (m means) addAll(prefix string, values map[string]float64) {
	for key, x := range values {
		m.add(prefix+key, x)
	}
}

// values returns the means of the keys that were given a number.
func (m means) values() map[string]float64 {
	out := make(map[string]float64, len(m))
	for key, v := range m {
		if v.n > 0 {
			out[key] = v.value()
		}
	}
	return out
}

// populationStd is sqrt(mean((x - mean(x))^2)).
func populationStd(xs []float64) float64 {
	var center, square mean
	for _, x := range xs {
		center.add(x)
	}
	for _, x := range xs {
		square.add((x - center.value()) * (x - center.value()))
	}
	return math.Sqrt(square.value())
}
