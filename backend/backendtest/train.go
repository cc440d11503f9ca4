package backendtest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
)

// testTrain checks that a training makes the next step, and that the next reply comes from it.
func testTrain(t *subtest, b art.Backend) {
	m := register(t, b, nil)
	for step := 1; step <= 2; step++ {
		result, err := m.Train(t.Context(), gather(t, m, 2), nil)
		must(t, "Train", err)
		if result.Step != step {
			t.Errorf("result has step %d, want %d", result.Step, step)
		}
		if got := result.Metrics["data/groups_trainable"]; got != 2 {
			t.Errorf("data/groups_trainable is %v, want 2; skipped: %+v", got, result.Skipped)
		}
		wantServed(t, m, step)
	}
}

// testTrainWhileServing checks that requests during a training are answered, by the previous or by the new step.
func testTrainWhileServing(t *subtest, b art.Backend) {
	m := register(t, b, nil)
	groups := gather(t, m, 2)
	answered := func() error {
		step, err := stepOf(t, m, "Are you busy?", nil)
		if err == nil && step != 0 {
			err = fmt.Errorf("step %d answers before the commit of step 1", step)
		}
		return err
	}
	// Progress is called after an optimizer step, before the policy step is committed.
	cfg := &art.TrainConfig{Progress: func(p art.TrainProgress) {
		if p.Done < 1 || p.Done > p.Total {
			t.Errorf("progress is %d of %d", p.Done, p.Total)
		}
		if err := inTime(t, answered); err != nil {
			t.Errorf("request during Train: %v", err)
		}
	}}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		keepAsking(t, m, stop)
	}()
	err := protect(func() error { _, err := m.Train(t.Context(), groups, cfg); return err })
	close(stop)
	<-stopped
	must(t, "Train", err)
}

// keepAsking makes requests, each answered by step 0 or 1, until stop is closed.
func keepAsking(t *subtest, m *art.Model, stop <-chan struct{}) {
	for i := uint64(0); ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		step, err := stepOf(t, m, "Are you there?", seeded(i))
		if err != nil {
			t.Errorf("request beside Train: %v", err)
			return
		}
		if step != 0 && step != 1 {
			t.Errorf("a request beside the training of step 1 was answered by step %d", step)
		}
	}
}

// stepOf returns the step that answers a request, from any goroutine.
func stepOf(t *subtest, m *art.Model, question string, opts *art.ChatOptions) (step int, err error) {
	err = protect(func() error {
		response, err := m.Complete(t.Context(), ask(question), opts)
		if err == nil && response.Message.Sample == nil {
			err = errors.New("the reply has no Sample")
		}
		if err == nil {
			step = response.Message.Sample.Step
		}
		return err
	})
	return step, err
}

// testTrainNothing checks that groups that cannot be trained on are listed with reasons, and that a step is made
// anyway.
func testTrainNothing(t *subtest, b art.Backend) {
	m := register(t, b, nil)
	unsampled := withRewards(t, m, 0, 1)
	for _, trajectory := range unsampled.Trajectories {
		for i := range trajectory.Messages {
			trajectory.Messages[i].Sample = nil
		}
	}
	bad := []struct {
		name   string
		group  *art.TrajectoryGroup
		reason credit.Reason
	}{
		{"nil", nil, credit.ReasonEmptyGroup},
		{"empty", &art.TrajectoryGroup{}, credit.ReasonEmptyGroup},
		{"singleton", withRewards(t, m, 1), credit.ReasonSingleton},
		{"equal rewards", withRewards(t, m, 0.1, 0.1), credit.ReasonNoVariance},
		{"NaN reward", withRewards(t, m, math.NaN(), 1), credit.ReasonBadReward},
		{"infinite reward", withRewards(t, m, 0, math.Inf(1)), credit.ReasonBadReward},
		{"no samples", unsampled, credit.ReasonNoSamples},
	}
	var groups []*art.TrajectoryGroup
	for _, c := range bad {
		groups = append(groups, c.group)
	}
	result, err := m.Train(t.Context(), groups, nil)
	must(t, "Train", err)
	if got, ok := result.Metrics["data/groups_trainable"]; !ok || got != 0 {
		t.Errorf("data/groups_trainable is %v (there: %v), want 0", got, ok)
	}
	for i, c := range bad {
		is := func(s art.Skip) bool { return s.Group == i && s.Reason == c.reason }
		if !slices.ContainsFunc(result.Skipped, is) {
			t.Errorf("group %d (%s) is not skipped as %q: %+v", i, c.name, c.reason, result.Skipped)
		}
	}
	if result.Step != 1 {
		t.Errorf("step is %d, want 1: nothing to train on is a step too", result.Step)
	}
	wantServed(t, m, 1)
}

// withRewards makes a group of one or two real completions.
func withRewards(t *subtest, m *art.Model, rewards ...float64) *art.TrajectoryGroup {
	t.Helper()
	g := gather(t, m, 1)[0]
	g.Trajectories = g.Trajectories[:len(rewards)]
	for i, r := range rewards {
		g.Trajectories[i].Reward = r
	}
	return g
}

// testTrainInvalid checks that a refused training makes no step.
func testTrainInvalid(t *subtest, b art.Backend) {
	m := register(t, b, nil)
	groups := gather(t, m, 1)
	_, err := m.Train(t.Context(), nil, nil)
	wantError(t, "Train without groups", err, art.ErrNoGroups)
	_, err = b.Train(t.Context(), m, nil, new(art.TrainConfig).WithDefaults())
	wantError(t, "Train of the backend without groups", err, art.ErrNoGroups)
	_, err = m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: -1, Loss: "none"})
	wantError(t, "Train with a bad config", err, art.ErrInvalid)
	_, err = b.Train(t.Context(), describe(t, "-unknown", nil), groups, new(art.TrainConfig).WithDefaults())
	wantError(t, "Train of an unknown model", err, art.ErrNotRegistered)
	wantServed(t, m, 0)
}
