package art

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
)

// Log stores groups and metrics under split ("train", "val") and a step: that of the policy which sampled the groups,
// the newest among their samples. Without samples it is the model's current step. groups and metrics may be nil.
//
// Row k of split "train" holds the rewards that policy k earned and the update from k to k+1. Train stores it with the
// step that it makes, with its own metrics and those of its groups; Log after Train, with the same groups, adds to it.
// Without groups that call would be about policy k+1, the current step. If the program stops before a policy is
// trained, what was logged for it under split "train" is dropped when the run is opened again. TrainSFT and TrainDPO
// store a train row in the same way; their trajectories have no samples, so further metrics of them belong under
// another split.
//
// Logging the same split and step again merges: an existing key gets the new value, others stay. Groups replace those
// stored before, but those that a step was trained on stay.
//
// To the given metrics it adds those of [Metrics], unless they are given,
//
//	split/reward          mean over the trajectories
//	split/reward_std_dev  mean over the groups of two or more of their population standard deviation
//	split/exception_rate  failures / (failures + trajectories)
//	split/duration        mean seconds, over the trajectories whose Duration is set
//	split/<k>             mean over the trajectories that have the metric k
//	split/group_<k>       mean over the groups that have the metric k
//	split/nan_values      NaN among these values, which the means leave out; absent for none
//
// A given key without "/" gets the split as prefix. NaN is not stored.
//
// It returns [ErrNotRegistered], [ErrUnsupported] when the backend is no driver.Logger, and [ErrInvalid] for a split
// that cannot be the name of a folder.
func (m *Model) Log(ctx context.Context, split string, groups []*TrajectoryGroup, metrics map[string]float64) error {
	if _, err := capability[logger](m, "log", "driver.Logger"); err != nil {
		return err
	}
	var p problems
	p.folderName("split", split)
	if err := p.err("log", `use a plain word such as "train" or "val"`); err != nil {
		return err
	}
	all := Metrics(groups...)
	maps.Copy(all, metrics)
	return m.logAt(ctx, split, policyStep(groups, m.Step()), groups, all)
}

// logAt stores groups and metrics under split and step, on a backend that is a Logger.
func (m *Model) logAt(
	ctx context.Context, split string, step int, groups []*TrajectoryGroup, metrics map[string]float64,
) error {
	all := make(map[string]float64, len(metrics))
	for key, value := range metrics {
		if math.IsNaN(value) {
			continue
		}
		if !strings.Contains(key, "/") {
			key = split + "/" + key
		}
		all[key] = value
	}
	if err := m.backend.(logger).Log(ctx, m, split, step, groups, all); err != nil {
		return err
	}
	tell(m.events().Log, LogEvent{m, split, step, groups, all})
	return nil
}

// policyStep returns the newest step among the samples of groups, and current when there are none. A sample with a step
// beyond current comes from another run, and does not count.
func policyStep(groups []*TrajectoryGroup, current int) int {
	newest := -1
	for _, g := range present(groups) {
		for _, t := range present(g.Trajectories) {
			for _, s := range t.Samples() {
				if s.Step <= current {
					newest = max(newest, s.Step)
				}
			}
		}
	}
	if newest < 0 {
		return current
	}
	return newest
}

// present returns the pointers of a list that are not nil.
func present[T any](list []*T) []*T {
	return slices.DeleteFunc(slices.Clone(list), func(p *T) bool { return p == nil })
}

// Metrics computes what [Model.Log] adds for groups, under keys without a split, such as "reward". Keys without a value
// are left out.
func Metrics(groups ...*TrajectoryGroup) map[string]float64 {
	named, own := means{}, means{}
	failures, trajectories := 0, 0
	for _, g := range present(groups) {
		failures += len(g.Failures)
		named.addAll("group_", g.Metrics)
		var rewards []float64
		for _, t := range present(g.Trajectories) {
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
	if n := named.numNaN() + own.numNaN(); n > 0 {
		out["nan_values"] = float64(n)
	}
	if n := failures + trajectories; n > 0 {
		out["exception_rate"] = float64(failures) / float64(n)
	}
	return out
}

// mean is a running mean that leaves out NaN, and counts it.
type mean struct {
	sum    float64
	n, nan int
}

func (m *mean) add(x float64) {
	if math.IsNaN(x) {
		m.nan++
		return
	}
	m.sum += x
	m.n++
}

func (m mean) value() float64 { return m.sum / float64(max(m.n, 1)) }

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

// numNaN counts what was left out.
func (m means) numNaN() int {
	n := 0
	for _, v := range m {
		n += v.nan
	}
	return n
}

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
