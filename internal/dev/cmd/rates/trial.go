package main

import (
	"context"
	"errors"
	"io"
	"math"
	"os"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/internal/dev/learning"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
)

// The tasks of a trial.
const (
	byReward   = "reward"
	byExamples = "examples"
)

// kindOptions are what is trained, by name.
var kindOptions = map[string]art.ModelOptions{
	"lora": {}, "dora": {LoRA: art.LoRA{DoRA: true, Targets: lora.DefaultTargets()}}, "full": {Full: true},
}

// errSkipped ends a trial whose gradients are not finite any more.
var errSkipped = errors.New("all updates of a step were skipped")

// trial is a short training, and how well it went.
type trial struct {
	Base     string  `json:"base"`
	Kind     string  `json:"kind"`
	Task     string  `json:"task"`
	Rate     float64 `json:"rate"`
	Seed     uint64  `json:"seed"`
	Steps    int     `json:"steps"`
	Hidden   int     `json:"hidden"`
	Start    float64 `json:"start"` // value of the first step, before any update
	Value    float64 `json:"value"` // mean of the last third of the steps
	Diverged bool    `json:"diverged"`
}

// key is the trial without its result.
func (t trial) key() trial {
	return trial{Base: t.Base, Kind: t.Kind, Task: t.Task, Rate: t.Rate, Seed: t.Seed, Steps: t.Steps}
}

// run trains in a folder that is removed afterwards. A training that diverges has the value of its start.
func (t *trial) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "rates")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	base, config, err := openBase(t.Base, dir)
	if err != nil {
		return err
	}
	t.Hidden = config.HiddenSize
	task := learning.YesNoMaybe()
	b, err := local.Open(ctx, &local.Options{Dir: dir, Slots: 64, Context: task.Context, Progress: io.Discard})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	opts := kindOptions[t.Kind]
	opts.Base, opts.Seed, opts.Retention = base, t.Seed, &art.Retention{}
	opts.Chat = art.ChatOptions{MaxTokens: &task.MaxTokens}
	m := art.NewModel("trial", &opts)
	if err := m.Register(ctx, b); err != nil {
		return err
	}
	values, err := t.steps(ctx, m, task)
	if errors.Is(err, trainer.ErrDiverged) || errors.Is(err, errSkipped) {
		t.Diverged, err = true, nil
	}
	if err != nil {
		return err
	}
	t.Start, t.Value = values[0], values[0]
	if !t.Diverged {
		t.Value = mean(values[len(values)-t.Steps/3:])
	}
	return nil
}

// steps trains, and returns the value that each step began with.
func (t *trial) steps(ctx context.Context, m *art.Model, task *learning.Task) (values []float64, err error) {
	step := t.rewarded
	if t.Task == byExamples {
		step = t.shown
	}
	agent := task.Start()
	for len(values) < t.Steps {
		value, err := step(ctx, m, agent)
		values = append(values, value)
		if err != nil {
			return values, err
		}
	}
	return values, nil
}

// rewarded makes a step by rewards, the mean of which is its value.
func (t *trial) rewarded(ctx context.Context, m *art.Model, agent learning.Agent) (value float64, err error) {
	groups, err := agent.Groups(ctx, m, m.Step())
	if err != nil {
		return math.NaN(), err
	}
	n := 0
	for _, g := range groups {
		for _, x := range g.Trajectories {
			if isWidth(t.Base) {
				x.Reward = evenIDs(x)
			}
			value += x.Reward
			n++
		}
	}
	result, err := m.Train(ctx, groups, &art.TrainConfig{LearningRate: t.Rate, MaxGradNorm: 1})
	if err == nil {
		err = checkUpdated(result)
	}
	return value / float64(n), err
}

// checkUpdated returns errSkipped for a step whose updates were all skipped.
func checkUpdated(result *art.TrainResult) error {
	if result.Metrics["data/updates_skipped"] > 0 && result.Metrics["data/updates"] == 0 {
		return errSkipped
	}
	return nil
}

// evenIDs is the share of sampled tokens with an even id: half of the vocabulary.
func evenIDs(t *art.Trajectory) float64 {
	n, even := 0, 0
	for _, message := range t.Messages {
		if message.Sample == nil {
			continue
		}
		for _, id := range message.Sample.IDs {
			n++
			if id%2 == 0 {
				even++
			}
		}
	}
	return float64(even) / float64(max(n, 1))
}

// shown makes a step by examples. Its value is the geometric mean of the probabilities of their tokens.
func (t *trial) shown(ctx context.Context, m *art.Model, _ learning.Agent) (value float64, err error) {
	var list []*art.Trajectory
	for i := range 32 {
		a, b := 10+(7*m.Step()+i)%20, 10+(3*i)%20
		list = append(list, art.NewTrajectory(art.User(question(a, b)), art.Assistant(answer(a, b))))
	}
	result, err := m.TrainSFT(ctx, list, &art.SFTConfig{LearningRate: t.Rate, BatchSize: 8, Seed: uint64(m.Step())})
	if err == nil {
		err = checkUpdated(result)
	}
	if err != nil {
		return 0, err
	}
	return math.Exp(-result.Metrics["loss/sft"]), nil
}

// mean of values.
func mean(values []float64) float64 {
	sum := 0.0
	for _, x := range values {
		sum += x
	}
	return sum / float64(len(values))
}
