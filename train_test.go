package art_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

func TestModel_Train(t *testing.T) {
	boom := errors.New("boom")
	var fail error
	var cfg *art.TrainConfig
	m := registered(t, &arttest.Backend{Learn: func(
		_ context.Context, _ *art.Model, _ []*art.TrajectoryGroup, c *art.TrainConfig,
	) error {
		cfg = c
		return fail
	}}, nil)
	groups := []*art.TrajectoryGroup{{}}
	result, err := m.Train(t.Context(), groups, nil)
	if err != nil || result.Step != 1 || m.Step() != 1 {
		t.Fatalf("result %+v, step %d, error %v", result, m.Step(), err)
	}
	wantEqual(t, "config that the backend gets", cfg, (*art.TrainConfig)(nil).WithDefaults())
	fail = boom
	result, err = m.Train(t.Context(), groups, nil)
	if err != boom || result != nil || m.Step() != 1 { //nolint:errorlint // it is returned unwrapped
		t.Errorf("after a failure: result %v, error %v, step %d", result, err, m.Step())
	}
	cfg = nil
	_, err = m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: -1})
	wantErr(t, err, art.ErrInvalid, "learning rate")
	_, err = m.Train(t.Context(), nil, nil)
	wantErr(t, err, art.ErrNoGroups)
	if cfg != nil {
		t.Error("the backend was called with an invalid configuration")
	}
}

func TestModel_TrainSFT(t *testing.T) {
	m := registered(t, &arttest.Backend{}, nil)
	result, err := m.TrainSFT(t.Context(), []*art.Trajectory{{}}, nil)
	if err != nil || result.Step != 1 || m.Step() != 1 {
		t.Errorf("result %+v, step %d, error %v", result, m.Step(), err)
	}
	_, err = m.TrainSFT(t.Context(), nil, nil)
	wantErr(t, err, art.ErrInvalid, "no trajectories")
	_, err = m.TrainSFT(t.Context(), []*art.Trajectory{{}}, &art.SFTConfig{Epochs: -1})
	wantErr(t, err, art.ErrInvalid, "epochs")
}

// rated is a backend that chooses learning rates.
type rated struct {
	*arttest.Backend
	rate float64
	fail error
}

func (r *rated) LearningRate(*art.Model) (float64, error) { return r.rate, r.fail }

// TestModel_LearningRate: the rate of a configuration counts before that of the backend, and that before the default.
func TestModel_LearningRate(t *testing.T) {
	var cfg *art.TrainConfig
	b := &rated{&arttest.Backend{Learn: func(
		_ context.Context, _ *art.Model, _ []*art.TrajectoryGroup, c *art.TrainConfig,
	) error {
		cfg = c
		return nil
	}}, 0.25, nil}
	m := art.NewModel("m", nil)
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	groups := []*art.TrajectoryGroup{{}}
	for _, c := range []struct {
		given *art.TrainConfig
		want  float64
	}{{nil, 0.25}, {&art.TrainConfig{Epochs: 2}, 0.25}, {&art.TrainConfig{LearningRate: 0.5}, 0.5}} {
		if _, err := m.Train(t.Context(), groups, c.given); err != nil || cfg.LearningRate != c.want {
			t.Errorf("rate %v, error %v, want %v", cfg.LearningRate, err, c.want)
		}
	}
	b.fail = &art.Error{Op: "learning rate", Err: art.ErrClosed, Hint: "open another backend"}
	_, err := m.Train(t.Context(), groups, nil)
	wantErr(t, err, art.ErrClosed)
	if _, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 0.5}); err != nil {
		t.Errorf("the backend is asked for a rate that is given: %v", err)
	}
}

func TestModel_Frozen(t *testing.T) {
	m := registered(t, &arttest.Backend{}, &art.ModelOptions{Frozen: true})
	_, err := m.Train(t.Context(), []*art.TrajectoryGroup{{}}, nil)
	wantErr(t, err, art.ErrFrozen)
	_, err = m.TrainSFT(t.Context(), []*art.Trajectory{{}}, nil)
	wantErr(t, err, art.ErrFrozen)
	_, err = m.TrainDPO(t.Context(), nil, nil)
	wantErr(t, err, art.ErrFrozen)
}

// lagging is a backend whose trainings return in another order than they commit.
type lagging struct {
	art.Backend
	steps []int
}

func (l *lagging) Train(
	context.Context, *art.Model, []*art.TrajectoryGroup, *art.TrainConfig,
) (*art.TrainResult, error) {
	step := l.steps[0]
	l.steps = l.steps[1:]
	return &art.TrainResult{Step: step}, nil
}

func TestModel_StepNeverFalls(t *testing.T) {
	m := art.NewModel("m", nil)
	if err := m.Register(t.Context(), &lagging{&arttest.Backend{}, []int{2, 1}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := m.Train(t.Context(), []*art.TrajectoryGroup{{}}, nil); err != nil || m.Step() != 2 {
			t.Errorf("step %d, error %v", m.Step(), err)
		}
	}
}

// TestTrainResult_JSON: a result can be written as JSON, with groups that were not trained on too.
func TestTrainResult_JSON(t *testing.T) {
	r := art.TrainResult{Step: 1, Advantages: [][]float64{{math.NaN()}}}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}
