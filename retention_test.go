package art_test

import (
	"errors"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

func TestRetention_Keep(t *testing.T) {
	steps := []int{0, 1, 2, 3, 4, 5, 6}
	rows := []art.HistoryRow{
		{Split: "val", Step: 1, Metrics: map[string]float64{"val/reward": 9}},
		{Split: "val", Step: 3, Metrics: map[string]float64{"val/reward": 2}},
		{Split: "val", Step: 99, Metrics: map[string]float64{"val/reward": 100}}, // has no checkpoint
	}
	for name, c := range map[string]struct {
		r    art.Retention
		want []int
	}{
		"the newest":          {art.Retention{}, []int{6}},
		"some of the newest":  {art.Retention{Newest: 3}, []int{4, 5, 6}},
		"the best":            {art.Retention{Best: "val/reward"}, []int{1, 6}},
		"every third":         {art.Retention{Every: 3}, []int{0, 3, 6}},
		"all rules":           {art.Retention{Newest: 2, Best: "val/reward", Every: 4}, []int{0, 1, 4, 5, 6}},
		"best of nothing":     {art.Retention{Best: "val/rewards"}, steps},
		"more than there are": {art.Retention{Newest: 10}, steps},
	} {
		wantEqual(t, name, c.r.Keep(steps, rows), c.want)
	}
	if got := (&art.Retention{}).Keep(nil, nil); len(got) != 0 {
		t.Errorf("of no steps: %v", got)
	}
}

// A backend that keeps no checkpoints refuses a retention.
func TestRegister_Retention(t *testing.T) {
	m := art.NewModel("m", &art.ModelOptions{Retention: &art.Retention{Newest: -1, Best: "reward"}})
	err := m.Register(t.Context(), struct{ art.Backend }{&arttest.Backend{}})
	wantErr(t, err, art.ErrInvalid, "keeps no checkpoints", "Newest is -1",
		`Best is "reward", want a metric with its split, "val/reward"`)
}

// Trainings in a row that find nothing to compare end the run, with the reason; one that does begins the count anew.
func TestTrain_Collapse(t *testing.T) {
	m := registered(t, &arttest.Backend{}, &art.ModelOptions{CollapseAfter: 3})
	train := func(rewards ...float64) error {
		group := &art.TrajectoryGroup{}
		for _, r := range rewards {
			group.Trajectories = append(group.Trajectories, rewarded(r))
		}
		_, err := m.Train(t.Context(), []*art.TrajectoryGroup{group, nil}, nil)
		return err
	}
	for _, rewards := range [][]float64{{1, 1}, {1, 1}, {1, 2}, {1, 1}, {0, 0}} {
		if err := train(rewards...); err != nil {
			t.Fatalf("%v: %v", rewards, err)
		}
	}
	wantErr(t, train(1, 1), art.ErrCollapsed, "all rewards of a group are equal", "trainings in a row: 3")
	wantErr(t, train(0, 0), art.ErrCollapsed, "all rewards are 0", "trainings in a row: 4")
	wantEqual(t, "step", m.Step(), 5)
	if err := train(0, 1); err != nil {
		t.Error(err)
	}
}

func TestModel_BestStepAndRestore(t *testing.T) {
	m := registered(t, &arttest.Backend{}, nil)
	for _, reward := range []float64{1, 5, 3} {
		if _, err := m.Train(t.Context(), []*art.TrajectoryGroup{{}}, nil); err != nil {
			t.Fatal(err)
		}
		if err := m.Log(t.Context(), "val", nil, map[string]float64{"reward": reward}); err != nil {
			t.Fatal(err)
		}
	}
	best, err := m.BestStep(t.Context(), "")
	if err != nil || best != 2 {
		t.Errorf("best step %d, %v", best, err)
	}
	_, err = art.BestStep([]art.HistoryRow{{Metrics: map[string]float64{"val/right": 1, "train/right": 1}}}, []int{0},
		"right")
	wantErr(t, err, art.ErrInvalid, `"right" (logged are train/right, val/right)`)
	_, err = art.BestStep([]art.HistoryRow{{Metrics: map[string]float64{"val/right": 1}}}, []int{0}, "test/right")
	wantErr(t, err, art.ErrInvalid, "(logged are val/right)")
	_, err = m.BestStep(t.Context(), "val/none")
	wantErr(t, err, art.ErrInvalid, "val/none")
	next, err := m.Restore(t.Context(), best)
	if err != nil || next != 4 || m.Step() != 4 {
		t.Errorf("restored as %d, %v", next, err)
	}
	frozen := registered(t, &arttest.Backend{}, &art.ModelOptions{Frozen: true})
	if _, err := frozen.Restore(t.Context(), 0); !errors.Is(err, art.ErrFrozen) {
		t.Error(err)
	}
}

// A given answer gets the sample that sampling it would have given.
func TestModel_Force(t *testing.T) {
	m := registered(t, &arttest.Backend{Reply: arttest.Script("four")}, nil)
	sampled := art.NewTrajectory(art.User("2+2"))
	reply, err := m.Chat(t.Context(), sampled, &art.ChatOptions{Seed: new(uint64(0))})
	if err != nil {
		t.Fatal(err)
	}
	forced := art.NewTrajectory(art.User("2+2"))
	if _, err := m.Force(t.Context(), forced, *reply, nil); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "sample", forced.Messages[1].Sample, reply.Sample)
	_, err = m.Force(t.Context(), forced, art.User("4"), nil)
	wantErr(t, err, art.ErrInvalid, "role")
	_, err = m.Force(t.Context(), nil, *reply, nil)
	wantErr(t, err, art.ErrInvalid, "nil")
	plain := art.NewModel("plain", nil)
	if err := plain.Register(t.Context(), struct{ art.Backend }{&arttest.Backend{}}); err != nil {
		t.Fatal(err)
	}
	_, err = plain.Force(t.Context(), forced, *reply, nil)
	wantErr(t, err, art.ErrUnsupported, "driver.Tokenizer")
	wantEqual(t, "messages", len(forced.Messages), 2)
}
