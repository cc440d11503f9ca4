package art_test

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// warned trains once on each list of groups, and returns the steps that were warned of and the last warning.
func warned(t *testing.T, steps [][]*art.TrajectoryGroup) (at []int, last string) {
	t.Helper()
	var log bytes.Buffer
	m := registered(t, &arttest.Backend{}, &art.ModelOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for i, groups := range steps {
		if _, err := m.Train(t.Context(), groups, nil); err != nil {
			t.Fatal(err)
		}
		if log.Len() > 0 {
			at, last = append(at, i+1), log.String()
			log.Reset()
		}
	}
	return at, last
}

// earned is a group with sampled replies.
func earned(t *testing.T, rewards ...float64) *art.TrajectoryGroup {
	t.Helper()
	m := registered(t, &arttest.Backend{}, nil)
	g := &art.TrajectoryGroup{}
	for _, r := range rewards {
		trajectory := art.NewTrajectory(art.User("Hello?"))
		if _, err := m.Chat(t.Context(), trajectory, nil); err != nil {
			t.Fatal(err)
		}
		trajectory.Reward = r
		g.Trajectories = append(g.Trajectories, trajectory)
	}
	return g
}

// TestTrain_WarnsOfIdleSteps: the first step that teaches nothing is warned of, and then only those that persist.
func TestTrain_WarnsOfIdleSteps(t *testing.T) {
	flat, good := []*art.TrajectoryGroup{earned(t, 1, 1)}, []*art.TrajectoryGroup{earned(t, 0, 1)}
	for name, test := range map[string]struct {
		steps [][]*art.TrajectoryGroup
		want  []int
	}{
		"never":     {slices.Repeat([][]*art.TrajectoryGroup{good}, 3), nil},
		"in turns":  {slices.Repeat([][]*art.TrajectoryGroup{good, flat}, 20), []int{2}},
		"persist":   {slices.Repeat([][]*art.TrajectoryGroup{flat}, 45), []int{1, 5, 10, 20, 40}},
		"come back": {append([][]*art.TrajectoryGroup{flat, flat, good}, slices.Repeat([][]*art.TrajectoryGroup{flat}, 9)...), []int{1, 8}},
	} {
		if got, last := warned(t, test.steps); !slices.Equal(got, test.want) {
			t.Errorf("%s: warnings at %v, want %v; the last: %s", name, got, test.want, last)
		}
	}
}

// TestTrain_IdleReasons: a warning has the reason and what to do about it.
func TestTrain_IdleReasons(t *testing.T) {
	unsampled := earned(t, 0, 1)
	for _, trajectory := range unsampled.Trajectories {
		trajectory.Messages[1].Sample = nil
	}
	for name, test := range map[string]struct {
		groups []*art.TrajectoryGroup
		want   []string
	}{
		"equal":      {[]*art.TrajectoryGroup{earned(t, 1, 1), earned(t, 0, 0)}, []string{"2 groups: no_variance", "difficulty"}},
		"alone":      {[]*art.TrajectoryGroup{earned(t, 1)}, []string{"1 group: singleton", "GroupSize"}},
		"unsampled":  {[]*art.TrajectoryGroup{unsampled}, []string{"no_samples", "Model.Chat"}},
		"of a kind":  {[]*art.TrajectoryGroup{earned(t, 1), earned(t, 1, 1), earned(t)}, []string{"empty_group", "singleton"}},
		"three of 4": {[]*art.TrajectoryGroup{earned(t, 1), earned(t, 1, 1), earned(t, 1), nil}, []string{"2 groups: singleton, ", "GroupSize"}},
	} {
		_, last := warned(t, [][]*art.TrajectoryGroup{test.groups})
		for _, want := range append(test.want, "taught nothing", "model=m", "step=1") {
			if !strings.Contains(last, want) {
				t.Errorf("%s: the warning lacks %q: %s", name, want, last)
			}
		}
	}
}

// TestTrain_IdleByDefault: without a logger the default one of the program gets the warning.
func TestTrain_IdleByDefault(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	m := registered(t, &arttest.Backend{}, nil)
	for range 3 {
		if _, err := m.Train(t.Context(), []*art.TrajectoryGroup{earned(t, 1, 1)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(log.String(), "taught nothing"); got != 1 {
		t.Errorf("%d warnings: %s", got, &log)
	}
}

// unfinished is a backend all of whose updates are skipped.
type unfinished struct{ *arttest.Backend }

func (b unfinished) Train(
	ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig,
) (*art.TrainResult, error) {
	r, err := b.Backend.Train(ctx, m, groups, cfg)
	if err == nil {
		r.Metrics = maps.Clone(r.Metrics)
		r.Metrics["data/updates"] = 0
		r.Skipped = append(r.Skipped, art.Skip{Group: 0, Trajectory: 1, Reason: credit.ReasonNotFinite})
	}
	return r, err
}

// TestTrain_IdleUpdates: a step all of whose updates are skipped taught nothing either.
func TestTrain_IdleUpdates(t *testing.T) {
	var log bytes.Buffer
	m := art.NewModel("m", &art.ModelOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := m.Register(t.Context(), unfinished{&arttest.Backend{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Train(t.Context(), []*art.TrajectoryGroup{earned(t, 0, 1)}, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "1 trajectory: not_finite") || !strings.Contains(log.String(), "Model.Restore") {
		t.Errorf("the log is %q", &log)
	}
}
