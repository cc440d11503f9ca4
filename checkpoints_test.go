package art_test

import (
	"math"
	"slices"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

func TestModel_DeleteCheckpoints(t *testing.T) {
	type row struct {
		step   int
		metric string
		value  float64
	}
	cases := []struct {
		name   string
		rows   []row
		metric string
		want   []int
	}{
		{"best", []row{{1, "val/reward", 1}, {2, "val/reward", 3}, {3, "val/reward", 2}}, "", []int{2, 4}},
		{"latest is best", []row{{1, "val/reward", 1}, {4, "val/reward", 3}}, "", []int{4}},
		{"negative", []row{{1, "val/reward", -2}, {2, "val/reward", -1}, {3, "val/reward", -3}}, "", []int{2, 4}},
		{"equal", []row{{1, "val/reward", 1}, {2, "val/reward", 1}, {3, "val/reward", 0}}, "", []int{2, 4}},
		{"named", []row{{1, "val/reward", 1}, {2, "test/score", 1}}, "test/score", []int{2, 4}},
		{"NaN", []row{{1, "val/reward", 1}, {2, "val/reward", math.NaN()}}, "", []int{1, 4}},
		{"not stored", []row{{1, "val/reward", 1}, {9, "val/reward", 5}}, "", []int{1, 4}},
		{"never logged", nil, "", []int{4}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fake := &arttest.Backend{}
			m := registered(t, fake, nil)
			for range 4 {
				if _, err := m.Train(t.Context(), []*art.TrajectoryGroup{{}}, nil); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range c.rows {
				if err := fake.Log(t.Context(), m, "val", r.step, nil, map[string]float64{r.metric: r.value}); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.DeleteCheckpoints(t.Context(), c.metric); err != nil {
				t.Fatal(err)
			}
			got, err := fake.Checkpoints(t.Context(), m)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("checkpoints %v, error %v; want %v", got, err, c.want)
			}
		})
	}
}

// The best step by training reward is the policy that earned it, not the next one.
func TestModel_DeleteCheckpointsByTrainReward(t *testing.T) {
	fake := &arttest.Backend{}
	m := registered(t, fake, nil)
	for _, reward := range []float64{1, 2, 9, 3, 4} { // of policies 0 to 4
		g := sampledAt(m.Step(), m.Step())
		g.Trajectories[0].Reward, g.Trajectories[1].Reward = reward-1, reward+1
		result, err := m.Train(t.Context(), []*art.TrajectoryGroup{g}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Log(t.Context(), "train", []*art.TrajectoryGroup{g}, result.Metrics); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.DeleteCheckpoints(t.Context(), "train/reward"); err != nil {
		t.Fatal(err)
	}
	got, err := fake.Checkpoints(t.Context(), m)
	if err != nil || !slices.Equal(got, []int{2, 5}) {
		t.Errorf("checkpoints %v, error %v; want 2, the best policy, and 5, the latest", got, err)
	}
}

// A mistyped metric deletes nothing.
func TestModel_DeleteCheckpointsUnknownMetric(t *testing.T) {
	fake := &arttest.Backend{}
	m := registered(t, fake, nil)
	if err := m.DeleteCheckpoints(t.Context(), "val/rewrad"); err != nil {
		t.Errorf("without checkpoints: %v", err)
	}
	for range 2 {
		if _, err := m.Train(t.Context(), []*art.TrajectoryGroup{{}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	wantErr(t, m.DeleteCheckpoints(t.Context(), "val/rewrad"), art.ErrInvalid, "val/rewrad")
	if got, err := fake.Checkpoints(t.Context(), m); err != nil || len(got) != 2 {
		t.Errorf("checkpoints %v, error %v", got, err)
	}
}
