package local

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/trainer"
)

// Train makes the next step. If nothing in the groups can be trained on, it commits a step with the unchanged adapter,
// so that a loop over steps continues; the result lists what was skipped.
func (b *Backend) Train(
	ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig,
) (*art.TrainResult, error) {
	e, err := b.trainable("train", m)
	if err != nil {
		return nil, err
	}
	if len(groups) == 0 {
		return nil, &art.Error{Op: "train", Err: art.ErrNoGroups, Hint: "gather at least one group of two trajectories"}
	}
	e.training.Lock()
	defer e.training.Unlock()
	if _, err := b.entry("train", m); err != nil { // closed meanwhile
		return nil, err
	}
	current := e.serving.Load().step
	batch := collect(groups, cfg, current, e.base.engine.Context(), e.base.config.VocabSize)
	metrics := batch.metrics(groups)
	metrics["data/groups"], metrics["data/groups_trainable"] = float64(len(groups)), float64(batch.groups)
	step := current + 1
	start := time.Now()
	state := e.state
	if len(batch.sequences) > 0 {
		run := policyRun(cfg, b.lossOf(cfg), trainSeed(m, step))
		bar := b.progress(m, fmt.Sprintf("train %s step %d", m.Name(), step), run.Epochs*run.MiniBatches)
		defer bar.finish()
		run.Progress = bar.update(cfg.Progress)
		sequences, err := grpo.Normalize(batch.sequences, normalizeConfig(cfg))
		if err != nil {
			return nil, &art.Error{Op: "train", Err: err}
		}
		sequences, err = e.addLogprobs(ctx, e.learner(b), cfg, sequences, metrics)
		if err != nil {
			return nil, trainError(ctx, "train", err, learningOptions{cfg.LearningRate, cfg.MaxGradNorm})
		}
		next, report, err := e.learner(b).Train(ctx, state, sequences, run)
		if err != nil {
			return nil, trainError(ctx, "train", err, learningOptions{cfg.LearningRate, cfg.MaxGradNorm})
		}
		state = next
		b.warnUnmoved(m, step, cfg.LearningRate, report)
		maps.Copy(metrics, reportMetrics(*report))
		maps.Copy(metrics, policyAge(batch.sequences))
		metrics["loss/learning_rate"] = cfg.LearningRate
	}
	e.addTimes(metrics, start)
	if err := e.addSums(metrics); err != nil {
		return nil, err
	}
	update := runs.Update{Groups: present(groups), Metrics: rowMetrics(groups, metrics)}
	if err := b.publish(m, e, state, step, update); err != nil {
		return nil, err
	}
	return &art.TrainResult{Step: step, Metrics: metrics, Skipped: batch.skipped, Advantages: batch.advantages}, nil
}

// trainable returns the entry of a model that is not frozen.
func (b *Backend) trainable(op string, m *art.Model) (*entry, error) {
	e, err := b.entry(op, m)
	if err != nil {
		return nil, err
	}
	if m.Options().Frozen {
		return nil, &art.Error{Op: op, Err: art.ErrFrozen, Hint: "make the model without Frozen to train it"}
	}
	return e, nil
}

// learner returns the trainer of a model. Its graphs are compiled at the first use.
func (e *entry) learner(b *Backend) *trainer.Trainer {
	if e.trainer == nil {
		target := trainer.AdapterTarget(e.base.config, e.base.params, e.adapter)
		e.trainer = trainer.New(target, trainer.Options{Device: b.device, FewShapes: graphx.ProfileOf(b.device).SlowCompile})
	}
	return e.trainer
}

// publish commits a step with its update, and then serves it. When it fails, the model stays at the previous step.
func (b *Backend) publish(m *art.Model, e *entry, state *trainer.State, step int, update runs.Update) error {
	oldAdapter, oldState := e.adapter, e.state
	adapter := e.adapter.Clone()
	if err := adapter.SetParams(state.Params); err != nil {
		return &art.Error{Op: "train", Err: err}
	}
	onDevice, err := engine.NewAdapter(b.device, adapter)
	if err != nil {
		return &art.Error{Op: "train", Err: err}
	}
	write := e.writeCheckpoint(m.Options().Base)
	if from, ok := e.run.Checkpoint(step - 1); ok && state == oldState {
		write = runs.CopyCheckpoint(from)
	}
	e.adapter, e.state = adapter, state
	if err := e.run.CommitUpdate(step, update, write); err != nil {
		e.adapter, e.state = oldAdapter, oldState
		return err
	}
	e.serving.Store(&serving{step: step, adapter: onDevice})
	e.committed = time.Now()
	b.opts.Logger.Info("step committed", "model", m.Name(), "step", step)
	b.retain(m, e)
	return nil
}

// policyRun translates a configuration with defaults filled in.
func policyRun(cfg *art.TrainConfig, loss grpo.Loss, seed uint64) trainer.Run {
	return trainer.Run{
		Loss: loss,
		Optimizer: grpo.AdamW{Beta1: cfg.Beta1, Beta2: cfg.Beta2, Eps: cfg.Eps, WeightDecay: *cfg.WeightDecay,
			MaxGradNorm: cfg.MaxGradNorm},
		Rate:   func(int) float64 { return cfg.LearningRate },
		Epochs: cfg.Epochs, MiniBatches: cfg.MiniBatches, MicroBatch: cfg.MicroBatch, Seed: seed,
	}
}

// normalizeConfig translates a configuration.
func normalizeConfig(cfg *art.TrainConfig) grpo.NormalizeConfig {
	return grpo.NormalizeConfig{
		Weighting: grpo.Weighting(cfg.Weighting), Length: cfg.Length, Balance: cfg.AdvantageBalance,
		Advantages: cfg.NormalizeAdvantages,
	}
}

// trainSeed is the seed of the order of sequences in a step.
func trainSeed(m *art.Model, step int) uint64 {
	return m.Options().Seed*0x9e3779b97f4a7c15 + uint64(step)
}
