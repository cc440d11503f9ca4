package local

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
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
func dataOf(sequences []grpo.Sequence) []loop.Datum {
	var data []loop.Datum
	total := float64(credit.NumTrained(sequences))
	for _, s := range sequences {
		n := len(s.IDs) - 1
		d := loop.Datum{Input: s.IDs[:n], Targets: make([]int32, n), Weights: make([]float32, n),
			Logprobs: make([]float32, n), Advantages: make([]float32, n)}
		for i := range n {
			d.Targets[i] = loop.NoTarget
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
		config loop.LossConfig
	}{
		{art.TrainConfig{Loss: credit.CISPO}, loop.LossConfig{"clip_low_threshold": 0, "clip_high_threshold": 5}},
		{art.TrainConfig{Loss: credit.PPO}, nil},
		{art.TrainConfig{Loss: credit.DRO}, nil},
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
				sequences, err := credit.Normalize(batch.Sequences, cfg.Credit().Normalize)
				require.NoError(t, err)
				pass, err := loop.ForwardBackward(t.Context(), own, dataOf(sequences), cfg.Loss, c.config)
				require.NoError(t, err)
				require.InDelta(t, result.Metrics["loss/policy"], pass.Loss, 1e-6)
				_, err = loop.OptimStep(t.Context(), own, loop.AdamW{
					LearningRate: cfg.LearningRate, Beta1: cfg.Beta1, Beta2: cfg.Beta2,
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
	data := []loop.Datum{
		{Input: []int32{1, 2}, Targets: []int32{2, 3}},
		{Input: []int32{4, 5}, Targets: []int32{5, 6}, Weights: []float32{math.MaxFloat32, math.MaxFloat32}},
	}
	result, err := loop.ForwardBackward(t.Context(), m, data, credit.CrossEntropy, nil)
	require.NoError(t, err)
	require.Equal(t, []int{1}, result.NotFinite)
	step, err := loop.OptimStep(t.Context(), m, loop.DefaultAdamW())
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
	data := []loop.Datum{{Input: []int32{1, 2}, Targets: []int32{2, 3}}}
	_, err := loop.ForwardBackward(t.Context(), m, data, credit.CrossEntropy, nil)
	require.NoError(t, err)
	_, err = loop.OptimStep(t.Context(), m, loop.DefaultAdamW())
	require.NoError(t, err)
	want, err := loop.Forward(t.Context(), m, data, credit.CrossEntropy, nil)
	require.NoError(t, err)
	for name, updates := range map[string]int{"whole": 2, "bare": 1} {
		path, err := loop.SaveWeights(t.Context(), m, name, name == "whole")
		require.NoError(t, err)
		require.Equal(t, "default/m@weights/"+name, path)
		fork := art.NewModel("of-"+name, &art.ModelOptions{Fork: path})
		require.NoError(t, fork.Register(t.Context(), b))
		got, err := loop.Forward(t.Context(), fork, data, credit.CrossEntropy, nil)
		require.NoError(t, err)
		require.Equal(t, want.Logprobs, got.Logprobs)
		result, err := loop.OptimStep(t.Context(), fork, loop.DefaultAdamW())
		require.NoError(t, err)
		require.Equal(t, updates, result.Updates)
	}
	other := art.NewModel("other", &art.ModelOptions{LoRA: art.LoRA{Rank: 4}})
	require.NoError(t, other.Register(t.Context(), b))
	require.ErrorIs(t, loop.LoadWeights(t.Context(), other, "m@weights/bare", false), art.ErrInvalid)
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
		data := []loop.Datum{{Input: []int32{1, 2}, Targets: []int32{2, 3}}}
		_, err := loop.ForwardBackward(t.Context(), m, data, credit.CrossEntropy, nil)
		require.NoError(t, err)
		_, err = loop.OptimStep(t.Context(), m, loop.DefaultAdamW())
		require.NoError(t, err)
	}
	shared := func(name string, optimizer bool) (files []string) {
		_, err := loop.SaveWeights(t.Context(), m, name, optimizer)
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
	require.NoError(t, loop.LoadWeights(t.Context(), m, "m@weights/whole", true))
	_, err = m.Publish(t.Context(), nil, nil)
	require.NoError(t, err)
}

// TestForwardBackward_OneMask: loss, gradient and metrics are of the targets in the loss, however the positions of a
// prompt are marked: by no target, by weight 0 or, where losses are multiples of it, by advantage 0. What else such a
// position has does not matter. Old logprobs are those of the model, so the policy has not moved.
func TestForwardBackward_OneMask(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	rng := seeded(t)
	const n, prompt = 24, 17
	input, targets := make([]int32, n), make([]int32, n)
	for i := range n {
		input[i], targets[i] = int32(rng.IntN(200)), int32(rng.IntN(200))
	}
	scored, err := loop.Forward(t.Context(), m, []loop.Datum{{Input: input, Targets: targets}}, credit.CrossEntropy, nil)
	require.NoError(t, err)
	junk := func() float32 { return float32(rng.NormFloat64()*5 - 20) }
	for _, loss := range []credit.Loss{
		credit.ImportanceSampling, credit.PPO, credit.CISPO, credit.DRO, credit.CrossEntropy,
	} {
		type measured struct {
			loss, norm float64
			metrics    map[string]float64
		}
		var want *measured
		for _, mark := range []string{"target", "weight", "weight", "advantage"} {
			if mark == "advantage" && (loss == credit.DRO || loss == credit.CrossEntropy) {
				continue
			}
			d := loop.Datum{Input: input, Targets: slices.Clone(targets), Weights: make([]float32, n)}
			if loss != credit.CrossEntropy {
				d.Logprobs, d.Advantages = make([]float32, n), make([]float32, n)
			}
			for i := range n {
				d.Weights[i] = 0.5
				if loss != credit.CrossEntropy {
					d.Logprobs[i], d.Advantages[i] = scored.Logprobs[0][i], float32(i%3)-1.5
				}
				if i >= prompt {
					continue
				}
				if loss != credit.CrossEntropy {
					d.Logprobs[i], d.Advantages[i] = junk(), junk()
				}
				switch mark {
				case "target":
					d.Targets[i], d.Weights[i] = loop.NoTarget, junk()
				case "weight":
					d.Weights[i] = 0
				case "advantage":
					d.Advantages[i] = 0
				}
			}
			result, err := loop.ForwardBackward(t.Context(), m, []loop.Datum{d}, loss, nil)
			require.NoError(t, err)
			if mark != "target" { // the logprobs of such a position are still computed
				require.InDeltaSlice(t, scored.Logprobs[0], result.Logprobs[0], 1e-5)
			}
			step, err := loop.OptimStep(t.Context(), m, loop.AdamW{Eps: 1}) // of rate 0
			require.NoError(t, err)
			got := &measured{result.Loss, step.GradNorm, result.Metrics}
			if want == nil {
				want = got
			}
			require.InDelta(t, want.loss, got.loss, 1e-5, "%s, %s", loss, mark)
			require.InEpsilon(t, want.norm, got.norm, 1e-4, "%s, %s", loss, mark)
			require.InDeltaMapValues(t, want.metrics, got.metrics, 1e-5, "%s, %s", loss, mark)
			if kl, ok := got.metrics["loss/kl_old_new"]; ok {
				require.InDelta(t, 0, kl, 1e-9, "%s, %s", loss, mark)
				require.InDelta(t, 0, got.metrics["loss/log_ratio_max"], 1e-5, "%s, %s", loss, mark)
			}
		}
	}
}
