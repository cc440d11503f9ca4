package art_test

import (
	"math"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// logged returns the metrics that are stored for a call of Log.
func logged(t *testing.T, groups []*art.TrajectoryGroup, metrics map[string]float64) map[string]float64 {
	t.Helper()
	fake := &arttest.Backend{}
	m := registered(t, fake, nil)
	if err := m.Log(t.Context(), "val", groups, metrics); err != nil {
		t.Fatal(err)
	}
	rows, err := fake.History(t.Context(), m)
	if err != nil || len(rows) != 1 || rows[0].Split != "val" || rows[0].Step != 0 {
		t.Fatalf("rows %+v, error %v", rows, err)
	}
	return rows[0].Metrics
}

func TestModel_LogMetrics(t *testing.T) {
	nan := math.NaN()
	groups := []*art.TrajectoryGroup{
		{
			Trajectories: []*art.Trajectory{
				{Reward: 1, Metrics: map[string]float64{"turns": 2, "won": 1}, Duration: time.Second},
				{Reward: 3, Metrics: map[string]float64{"turns": 4, "broken": nan}},
			},
			Failures: make([]art.Failure, 1),
			Metrics:  map[string]float64{"spread": 5},
		},
		{
			Trajectories: []*art.Trajectory{{Reward: 0, Duration: 4 * time.Second}, {Reward: 0}, {Reward: 0, Metrics: map[string]float64{"turns": nan}}},
			Metrics:      map[string]float64{"spread": 7},
		},
		{Trajectories: []*art.Trajectory{{Reward: 6}}}, // one: no standard deviation
		{Failures: make([]art.Failure, 1)},
		nil,
		{Trajectories: []*art.Trajectory{nil}},
	}
	got := logged(t, groups, map[string]float64{"loss/policy": 0.5, "accuracy": 0.25, "time": nan, "won": 9})
	wantEqual(t, "metrics", got, map[string]float64{
		"val/reward":         10.0 / 6,
		"val/reward_std_dev": 0.5, // of 1 and 0
		"val/exception_rate": 0.25,
		"val/duration":       2.5,
		"val/turns":          3,
		"val/group_spread":   6,
		"val/nan_values":     2,
		"val/accuracy":       0.25,
		"val/won":            9, // given metrics take precedence
		"loss/policy":        0.5,
	})
}

func TestModel_LogNothing(t *testing.T) {
	wantEqual(t, "metrics", logged(t, nil, nil), map[string]float64{})
	wantEqual(t, "metrics of failures", logged(t, []*art.TrajectoryGroup{{Failures: make([]art.Failure, 2)}}, nil),
		map[string]float64{"val/exception_rate": 1})
	nan := []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{Reward: math.NaN()}, {Reward: 2}}}}
	wantEqual(t, "metrics with a NaN reward", logged(t, nan, nil),
		map[string]float64{"val/exception_rate": 0, "val/reward": 2, "val/reward_std_dev": 0, "val/nan_values": 1})
}

// sampledAt is a group with a trajectory for each step, sampled by that policy.
func sampledAt(steps ...int) *art.TrajectoryGroup {
	g := &art.TrajectoryGroup{}
	for _, step := range steps {
		t := art.NewTrajectory(art.User("?"), art.Message{Role: art.RoleAssistant, Sample: &art.Sample{Step: step}})
		g.Trajectories = append(g.Trajectories, t)
	}
	return g
}

// The step of a log is that of the policy that sampled the groups, not of the one that was trained on them.
func TestModel_LogStep(t *testing.T) {
	fake := &arttest.Backend{}
	m := registered(t, fake, nil)
	for range 3 {
		if _, err := m.Train(t.Context(), []*art.TrajectoryGroup{{}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	additional := sampledAt(0)
	additional.Trajectories[0].AdditionalHistories = []art.History{sampledAt(1).Trajectories[0].History}
	for name, c := range map[string]struct {
		groups []*art.TrajectoryGroup
		want   int
	}{
		"a policy before":    {[]*art.TrajectoryGroup{sampledAt(2, 2), sampledAt(2)}, 2},
		"several policies":   {[]*art.TrajectoryGroup{sampledAt(1, 0), nil, sampledAt(0)}, 1},
		"additional history": {[]*art.TrajectoryGroup{additional}, 1},
		"policy 0":           {[]*art.TrajectoryGroup{sampledAt(0)}, 0},
		"the newest policy":  {[]*art.TrajectoryGroup{sampledAt(3)}, 3},
		"no samples":         {[]*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{rewarded(1), nil}}}, 3},
		"no groups":          {nil, 3},
		"another run's":      {[]*art.TrajectoryGroup{sampledAt(50)}, 3},
		"another run's, too": {[]*art.TrajectoryGroup{sampledAt(50, 1)}, 1},
	} {
		if err := m.Log(t.Context(), name, c.groups, map[string]float64{"x": 1}); err != nil {
			t.Fatal(err)
		}
		rows, err := fake.History(t.Context(), m)
		if last := rows[len(rows)-1]; err != nil || last.Split != name || last.Step != c.want {
			t.Errorf("%s: row %+v, error %v; want step %d", name, last, err, c.want)
		}
		if len(fake.Logged(m, name, c.want)) != len(c.groups) {
			t.Errorf("%s: groups %v", name, fake.Logged(m, name, c.want))
		}
	}
	for _, split := range []string{"", "a/b", "..", " "} {
		wantErr(t, m.Log(t.Context(), split, nil, nil), art.ErrInvalid, "split")
	}
}
