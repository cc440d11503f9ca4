package local

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/trainset"
)

// play gathers two groups of short replies, rewarded by their length.
func play(t *testing.T, m *art.Model) []*art.TrajectoryGroup {
	t.Helper()
	groups, err := art.GatherGroups(t.Context(), []string{"yes or no", "What do cows drink?"},
		func(ctx context.Context, question string) (*art.Trajectory, error) {
			trajectory := art.NewTrajectory(art.User(question))
			for range 2 {
				reply, err := m.Chat(ctx, trajectory, nil)
				if err != nil {
					return nil, err
				}
				trajectory.Reward += float64(len(reply.Content)) / 10
				trajectory.Add(art.User("And why?"))
			}
			return trajectory, nil
		}, &art.GatherOptions{GroupSize: 6})
	require.NoError(t, err)
	return groups
}

// dataOf makes data of normalised sequences, with weights that add up to what Train minimises.
func dataOf(sequences []grpo.Sequence) []art.Datum {
	var data []art.Datum
	total := float64(credit.NumTrained(sequences))
	for _, s := range sequences {
		n := len(s.IDs) - 1
		d := art.Datum{Input: s.IDs[:n], Targets: make([]int32, n), Weights: make([]float32, n),
			Logprobs: make([]float32, n), Advantages: make([]float32, n)}
		for i := range n {
			d.Targets[i] = art.NoTarget
			if s.Trained[i+1] {
				d.Targets[i], d.Logprobs[i] = s.IDs[i+1], s.Logprobs[i+1]
				d.Weights[i], d.Advantages[i] = float32(s.Weight/total), float32(s.Advantage)
			}
		}
		data = append(data, d)
	}
	return data
}

// TestOwnLoop_IsTrain: forward-backward, optimizer step and publish make the step that Train makes, to the same bytes,
// of losses that both have; and so does the next step, from the moments of the first one.
func TestOwnLoop_IsTrain(t *testing.T) {
	for _, c := range []struct {
		cfg    art.TrainConfig
		config art.LossConfig
	}{
		{art.TrainConfig{Loss: art.LossCISPO}, art.LossConfig{"clip_low_threshold": 0, "clip_high_threshold": 5}},
		{art.TrainConfig{Loss: art.LossPPO}, nil},
		{art.TrainConfig{Loss: art.LossDRO}, nil},
	} {
		t.Run(string(c.cfg.Loss), func(t *testing.T) {
			b := open(t, t.TempDir())
			opts := &art.ModelOptions{Seed: 3, Chat: art.ChatOptions{MaxTokens: new(6)}}
			trained, own := art.NewModel("trained", opts), art.NewModel("own", opts)
			require.NoError(t, trained.Register(t.Context(), b))
			require.NoError(t, own.Register(t.Context(), b))
			c.cfg.LearningRate = 1e-3
			cfg := c.cfg.WithDefaults()
			for step := range 2 {
				groups := play(t, trained)
				result, err := trained.Train(t.Context(), groups, &c.cfg)
				require.NoError(t, err)
				require.Zero(t, result.Metrics["train/logprob_gap_max"])

				batch := trainset.FromGroups(groups, cfg, step, 128, 1<<20)
				sequences, err := credit.Normalize(batch.Sequences, trainset.NormalizeConfig(cfg))
				require.NoError(t, err)
				pass, err := own.ForwardBackward(t.Context(), dataOf(sequences), cfg.Loss, c.config)
				require.NoError(t, err)
				require.InDelta(t, result.Metrics["loss/policy"], pass.Loss, 1e-6)
				_, err = own.OptimStep(t.Context(), art.AdamW{LearningRate: cfg.LearningRate, Beta1: cfg.Beta1, Beta2: cfg.Beta2,
					Eps: cfg.Eps, WeightDecay: *cfg.WeightDecay, GradClipNorm: cfg.MaxGradNorm})
				require.NoError(t, err)
				_, err = own.Publish(t.Context(), groups, nil)
				require.NoError(t, err)
				for _, name := range []string{"adapter_model.safetensors", optimizerFile, trainerFile} {
					require.Equal(t, file(t, b, trained, step+1, name), file(t, b, own, step+1, name), "step %d, %s", step+1, name)
				}
			}
		})
	}
}

// TestForwardBackward_NamesWhatIsNotFinite: a datum whose gradient overflows is named, and the update is skipped.
func TestForwardBackward_NamesWhatIsNotFinite(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	data := []art.Datum{
		{Input: []int32{1, 2}, Targets: []int32{2, 3}},
		{Input: []int32{4, 5}, Targets: []int32{5, 6}, Weights: []float32{math.MaxFloat32, math.MaxFloat32}},
	}
	result, err := m.ForwardBackward(t.Context(), data, art.LossCrossEntropy, nil)
	require.NoError(t, err)
	require.Equal(t, []int{1}, result.NotFinite)
	step, err := m.OptimStep(t.Context(), art.DefaultAdamW())
	require.NoError(t, err)
	require.True(t, step.Skipped)
	require.Zero(t, step.Updates)
	_, err = m.Train(t.Context(), play(t, m), nil) // nothing is left of it
	require.NoError(t, err)
}

// TestFork_SavedWeights: a new run begins with saved weights, with their optimizer or without.
func TestFork_SavedWeights(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	data := []art.Datum{{Input: []int32{1, 2}, Targets: []int32{2, 3}}}
	_, err := m.ForwardBackward(t.Context(), data, art.LossCrossEntropy, nil)
	require.NoError(t, err)
	_, err = m.OptimStep(t.Context(), art.DefaultAdamW())
	require.NoError(t, err)
	want, err := m.Forward(t.Context(), data, art.LossCrossEntropy, nil)
	require.NoError(t, err)
	for name, updates := range map[string]int{"whole": 2, "bare": 1} {
		path, err := m.SaveWeights(t.Context(), name, name == "whole")
		require.NoError(t, err)
		require.Equal(t, "default/m@weights/"+name, path)
		fork := art.NewModel("of-"+name, &art.ModelOptions{Fork: path})
		require.NoError(t, fork.Register(t.Context(), b))
		got, err := fork.Forward(t.Context(), data, art.LossCrossEntropy, nil)
		require.NoError(t, err)
		require.Equal(t, want.Logprobs, got.Logprobs)
		result, err := fork.OptimStep(t.Context(), art.DefaultAdamW())
		require.NoError(t, err)
		require.Equal(t, updates, result.Updates)
	}
	other := art.NewModel("other", &art.ModelOptions{LoRA: art.LoRA{Rank: 4}})
	require.NoError(t, other.Register(t.Context(), b))
	require.ErrorIs(t, other.LoadWeights(t.Context(), "m@weights/bare", false), art.ErrInvalid)
}

// TestSaveWeights_OfStep: weights that are saved at a step are those of its checkpoint, in the same files, with the
// optimizer or without; after an update they are not. A sampler of them answers alike.
func TestSaveWeights_OfStep(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	e, err := b.lock("test", m)
	require.NoError(t, err)
	e.training.Unlock()
	update := func() {
		data := []art.Datum{{Input: []int32{1, 2}, Targets: []int32{2, 3}}}
		_, err := m.ForwardBackward(t.Context(), data, art.LossCrossEntropy, nil)
		require.NoError(t, err)
		_, err = m.OptimStep(t.Context(), art.DefaultAdamW())
		require.NoError(t, err)
	}
	shared := func(name string, optimizer bool) (files []string) {
		_, err := m.SaveWeights(t.Context(), name, optimizer)
		require.NoError(t, err)
		saved, err := e.run.WeightsDir(name)
		require.NoError(t, err)
		require.Equal(t, optimizer, hasOptimizer(saved))
		newest, _ := e.run.Checkpoint(m.Step())
		for _, file := range []string{"adapter_model.safetensors", optimizerFile} {
			x, errX := os.Stat(filepath.Join(saved, file))
			y, errY := os.Stat(filepath.Join(newest, file))
			if errX == nil && errY == nil && os.SameFile(x, y) {
				files = append(files, file)
			}
		}
		return files
	}
	update()
	_, err = m.Publish(t.Context(), nil, nil)
	require.NoError(t, err)
	require.Nil(t, e.own.session, "the state of a step need not stay on the device")
	require.Len(t, shared("whole", true), 2)
	require.Len(t, shared("bare", false), 1)
	snapshot, err := m.Snapshot(t.Context(), "")
	require.NoError(t, err)
	require.Same(t, e.serving.Load().adapter, b.models[snapshot].serving.Load().adapter)
	update()
	require.Empty(t, shared("later", true))
	later, err := m.Snapshot(t.Context(), "")
	require.NoError(t, err)
	require.NotSame(t, e.serving.Load().adapter, b.models[later].serving.Load().adapter)
	require.NoError(t, m.LoadWeights(t.Context(), "m@weights/whole", true))
	_, err = m.Publish(t.Context(), nil, nil)
	require.NoError(t, err)
}
