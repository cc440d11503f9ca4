package prometheus_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/track/prometheus"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// exporter has dropped as many events as it says.
type exporter int

func (e exporter) Dropped() int { return int(e) }

// watched is a tracker in a registry, after a gather with failures, a training that fails and two that do not.
func watched(t *testing.T, opts *prometheus.Options) *client.Registry {
	t.Helper()
	watch := prometheus.New(opts)
	registry := client.NewPedanticRegistry()
	registry.MustRegister(watch)
	fail := true
	backend := &arttest.Backend{Learn: func(context.Context, *art.Model, []*art.TrajectoryGroup, *art.TrainConfig) error {
		if fail {
			fail = false
			return errors.New("no")
		}
		return nil
	}}
	m := art.NewModel("player", &art.ModelOptions{Events: watch.Events()})
	require.NoError(t, m.Register(t.Context(), backend))
	_, err := art.GatherGroups(t.Context(), []int{0, 1, 2}, func(_ context.Context, n int) (*art.Trajectory, error) {
		if n > 0 {
			return nil, errors.New("boom")
		}
		return art.NewTrajectory(), nil
	}, &art.GatherOptions{GroupSize: 1, Concurrency: 1, MaxFailures: 2, Events: watch.Events()})
	require.NoError(t, err)
	groups := []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{Reward: 0.25}, {Reward: 0.75}}}}
	for range 3 {
		_, _ = m.Train(t.Context(), groups, nil)
	}
	require.NoError(t, m.Log(t.Context(), "val", groups[:1], map[string]float64{"costs/all": 2, "won": 0.5}))
	return registry
}

// The collector has what the events told, and Prometheus' linter finds nothing.
func TestTracker(t *testing.T) {
	registry := watched(t, &prometheus.Options{Exporters: map[string]prometheus.Exporter{"otel": exporter(3)}})
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP art_exporter_dropped_total Events that a tracker has dropped.
# TYPE art_exporter_dropped_total counter
art_exporter_dropped_total{target="otel"} 3
# HELP art_metric Newest value of a metric of the history.
# TYPE art_metric gauge
art_metric{model_name="player",name="costs/all"} 2
art_metric{model_name="player",name="data/groups_trainable"} 0
art_metric{model_name="player",name="val/won"} 0.5
# HELP art_optimizer_steps_total Optimizer steps.
# TYPE art_optimizer_steps_total counter
art_optimizer_steps_total{model_name="player"} 2
# HELP art_reward Mean reward of the newest row.
# TYPE art_reward gauge
art_reward{model_name="player",split="train"} 0.5
art_reward{model_name="player",split="val"} 0.5
# HELP art_rollouts_inflight Rollouts that run.
# TYPE art_rollouts_inflight gauge
art_rollouts_inflight 0
# HELP art_rollouts_total Rollouts that have ended.
# TYPE art_rollouts_total counter
art_rollouts_total{outcome="cancelled"} 0
art_rollouts_total{outcome="failed"} 2
art_rollouts_total{outcome="ok"} 1
# HELP art_skipped_total Groups and trajectories that were not trained on.
# TYPE art_skipped_total counter
art_skipped_total{model_name="player",reason="no_samples"} 4
# HELP art_train_step The newest policy step.
# TYPE art_train_step gauge
art_train_step{model_name="player"} 2
# HELP art_trainings_total Trainings that have ended.
# TYPE art_trainings_total counter
art_trainings_total{model_name="player",outcome="error"} 1
art_trainings_total{model_name="player",outcome="ok"} 2
`), "art_exporter_dropped_total", "art_metric", "art_optimizer_steps_total", "art_reward", "art_rollouts_inflight",
		"art_rollouts_total", "art_skipped_total", "art_train_step", "art_trainings_total"))
}

// The names of metrics are bounded.
func TestTracker_MaxNames(t *testing.T) {
	registry := watched(t, &prometheus.Options{MaxNames: 1})
	n, err := testutil.GatherAndCount(registry, "art_metric")
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// Rollouts that are cancelled do not run for ever.
func TestTracker_Cancelled(t *testing.T) {
	watch := prometheus.New(nil)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := art.GatherGroups(ctx, []int{0}, func(ctx context.Context, _ int) (*art.Trajectory, error) {
		cancel()
		return nil, ctx.Err()
	}, &art.GatherOptions{GroupSize: 1, Events: watch.Events()})
	require.Error(t, err)
	registry := client.NewRegistry()
	registry.MustRegister(watch)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP art_rollouts_inflight Rollouts that run.
# TYPE art_rollouts_inflight gauge
art_rollouts_inflight 0
# HELP art_rollouts_total Rollouts that have ended.
# TYPE art_rollouts_total counter
art_rollouts_total{outcome="cancelled"} 1
`), "art_rollouts_inflight", "art_rollouts_total"))
}

// Examples have no rewards, also when no update had a finite loss; groups have.
func TestTracker_Skipped(t *testing.T) {
	for key, rewards := range map[string]int{"data/updates": 0, "data/groups": 1} {
		watch := prometheus.New(nil)
		registry := client.NewRegistry()
		registry.MustRegister(watch)
		watch.Events().Commit(art.Commit{
			Model: art.NewModel("player", nil), Groups: []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{Reward: 1}}}},
			Result: &art.TrainResult{Step: 1, Metrics: map[string]float64{"data/updates_skipped": 1, key: 0}},
		})
		n, err := testutil.GatherAndCount(registry, "art_reward")
		require.NoError(t, err)
		require.Equal(t, rewards, n, key)
	}
}
