package art_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

func ExampleModel_TrainDPO() {
	ctx, model := context.Background(), art.NewModel("polite", nil)
	if err := model.Register(ctx, &arttest.Backend{}); err != nil { // in a program: the Backend of backend/local
		panic(err)
	}
	question := art.User("Where is my order?")
	result, err := model.TrainDPO(ctx, []art.Preference{{
		Chosen:   art.NewTrajectory(question, art.Assistant("It arrives tomorrow.")),
		Rejected: art.NewTrajectory(question, art.Assistant("How should I know?")),
	}}, &art.DPOConfig{LearningRate: 1e-4, Epochs: 3})
	if err != nil {
		panic(err)
	}
	fmt.Println("step", result.Step)
	// Output: step 1
}

func TestModel_TrainDPO(t *testing.T) {
	var start art.TrainStart
	var commit art.Commit
	m := registered(t, &arttest.Backend{}, &art.ModelOptions{Events: &art.Events{
		TrainStart: func(e art.TrainStart) { start = e }, Commit: func(e art.Commit) { commit = e },
	}})
	yes := art.NewTrajectory(art.User("?"), art.Assistant("yes"))
	no := art.NewTrajectory(art.User("?"), art.Assistant("no"))
	result, err := m.TrainDPO(t.Context(), []art.Preference{{Chosen: yes, Rejected: no}}, nil)
	if err != nil || result.Step != 1 || m.Step() != 1 {
		t.Fatalf("result %+v, step %d, error %v", result, m.Step(), err)
	}
	if start.DPO == nil || start.DPO.Beta != 0.1 || start.Groups != 1 || start.Trajectories != 2 {
		t.Errorf("the training starts as %+v", start)
	}
	if got := commit.Groups[0].Trajectories; got[0] != yes || got[1] != no {
		t.Error("the pair is not a group of its trajectories, the chosen one first")
	}
	_, err = m.TrainDPO(t.Context(), nil, nil)
	wantErr(t, err, art.ErrInvalid, "no pairs")
	_, err = m.TrainDPO(t.Context(), []art.Preference{{Chosen: yes, Rejected: no}}, &art.DPOConfig{Epochs: -1})
	wantErr(t, err, art.ErrInvalid, "epochs")
}

// TestModel_TrainDPO_Pairs: every problem of every pair is listed, and no step is made.
func TestModel_TrainDPO_Pairs(t *testing.T) {
	m := registered(t, &arttest.Backend{}, nil)
	said := func(texts ...string) *art.Trajectory {
		trajectory := art.NewTrajectory(art.User(texts[0]))
		for _, text := range texts[1:] {
			trajectory.Add(art.Assistant(text))
		}
		return trajectory
	}
	more, tools := said("a", "y"), said("a", "y")
	more.AdditionalHistories = []art.History{{}}
	tools.Tools = []art.Tool{{Name: "f"}}
	other := art.NewTrajectory(art.User("a"), art.User("b"), art.Assistant("y"))
	_, err := m.TrainDPO(t.Context(), []art.Preference{
		{Chosen: said("a", "y")}, {said("a", "y"), said("b", "x")}, {said("a", "y"), said("a", "y")},
		{more, said("a", "x")}, {tools, said("a", "x")}, {said("a", "y"), other}, {said("a", "y"), said("a", "x")},
	}, nil)
	wantErr(t, err, art.ErrInvalid, "pair 0 has no chosen or no rejected", "pair 1 has no common prompt",
		"pair 2: after 2 common messages", "pair 3 has additional histories", "pair 4 has different tools",
		"pair 5: after 1 common messages")
	if n := strings.Count(err.Error(), "pair 2:"); n != 1 {
		t.Errorf("pair 2 is in it %d times: %v", n, err)
	}
	if m.Step() != 0 {
		t.Errorf("step is %d, want 0", m.Step())
	}
}

// TestPreference_Prompt: what a message says counts, and not whether the model sampled it.
func TestPreference_Prompt(t *testing.T) {
	sampled := art.Assistant("hi")
	sampled.Sample = &art.Sample{IDs: []int32{1}}
	p := art.Preference{
		Chosen:   art.NewTrajectory(art.User("a"), sampled, art.User("b"), art.Assistant("y")),
		Rejected: art.NewTrajectory(art.User("a"), art.Assistant("hi"), art.User("b"), art.Assistant("x")),
	}
	if got := p.Prompt(); got != 3 {
		t.Errorf("the prompt has %d messages, want 3", got)
	}
}

func TestDPOConfig_WithDefaults(t *testing.T) {
	want := &art.DPOConfig{
		Beta: 0.1, LearningRate: 5e-6, BatchSize: 8, Epochs: 1, Decay: ptr(1.0), MaxGradNorm: 1,
		Schedule: art.ScheduleConstant,
	}
	wantEqual(t, "of nil", (*art.DPOConfig)(nil).WithDefaults(), want)
	if got := (&art.DPOConfig{LengthNormalized: true}).WithDefaults().Beta; got != 5 {
		t.Errorf("beta is %v with length normalisation, want 5", got)
	}
	given := &art.DPOConfig{
		Beta: 1, LabelSmoothing: 0.1, LengthNormalized: true, ReferenceBase: true, LearningRate: 1, BatchSize: 2, Epochs: 3,
		Warmup: 0.1, Decay: ptr(0.0), MaxGradNorm: -1, WeightDecay: 0.5, Seed: 6,
		Schedule: art.ScheduleCosine,
	}
	wantEqual(t, "of what is given", given.WithDefaults(), given)
}

func TestDPOConfig_Validate(t *testing.T) {
	nan := math.NaN()
	bad := &art.DPOConfig{
		Beta: -1, LabelSmoothing: 0.5, LearningRate: nan, BatchSize: -1, Epochs: -2, Warmup: 1.5, Decay: &nan,
		MaxGradNorm: math.Inf(-1), WeightDecay: -3,
	}
	wantErr(t, bad.Validate(), art.ErrInvalid, "beta is -1", "label smoothing is 0.5", "learning rate is NaN",
		"batch size is -1", "epochs is -2", "warmup is 1.5", "decay is NaN", "max grad norm is -Inf", "weight decay is -3")
	for _, good := range []*art.DPOConfig{nil, {}, {LabelSmoothing: 0.49, Warmup: 1, Decay: ptr(0.0)}} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
}
