package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/internal/trainset"
)

// Train makes the next step. If nothing in the groups can be trained on, or every update is skipped because its loss or
// gradient is not finite, it commits a step with the unchanged adapter, so that a loop over steps continues; the result
// lists what was skipped. When the device fails, the error is
// [art.ErrDevice], and the model and its run stay at the step before.
func (b *Backend) Train(
	ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig,
) (*art.TrainResult, error) {
	if len(groups) == 0 {
		return nil, &art.Error{Op: "train", Err: art.ErrNoGroups, Hint: "gather at least one group of two trajectories"}
	}
	if err := b.CheckTrain(cfg); err != nil {
		return nil, err
	}
	e, err := b.beginStep("train", m)
	if err != nil {
		return nil, err
	}
	defer e.training.Unlock()
	current := e.serving.Load().step
	batch := trainset.FromGroups(groups, cfg, current, e.base.engine.Context(), e.base.config.VocabSize)
	if len(batch.Sequences) > 0 {
		if err := b.fit("train", e, batch.Sequences); err != nil {
			return nil, err
		}
	}
	metrics := map[string]float64{
		"data/groups": float64(len(groups)), "data/groups_trainable": float64(batch.Groups),
	}
	step := current + 1
	start := time.Now()
	state := e.state
	var ratios []float32
	if len(batch.Sequences) > 0 {
		bar := b.progress(m, fmt.Sprintf("train %s step %d", m.Name(), step), cfg.Epochs*cfg.MiniBatches)
		defer bar.finish()
		u := policyUpdate{
			cfg: cfg, loss: b.lossOf(cfg), batch: batch, seed: m.Options().Seed, step: step, checkpoint: e.verified,
			progress: bar.update(cfg.Progress),
		}
		next, report, err := u.run(ctx, e, e.learner(b), metrics)
		if err != nil {
			return nil, err
		}
		state, ratios = next, report.Ratios
		b.warnSkipped(m, step, report, batch.SkipNotFinite(report.NotFinite, report.Overflowed))
		b.warnUnmoved(m, step, cfg.LearningRate, report)
	}
	maps.Copy(metrics, batch.Metrics(groups))
	b.addMemory(metrics)
	e.addTimes(metrics, groups, start)
	if err := e.addSums(metrics); err != nil {
		return nil, err
	}
	update := runs.Update{Groups: runs.Present(groups), Metrics: trainset.RowMetrics(groups, metrics)}
	if err := b.publish(m, e, state, update, e.record(m, update, updateRecord{Train: cfg})); err != nil {
		return nil, err
	}
	return &art.TrainResult{
		Step: step, Metrics: metrics, Skipped: batch.Skipped, Advantages: batch.Advantages, Ratios: ratios,
	}, nil
}

// CheckGroup says why [Backend.Train] would skip a group as a whole.
func (b *Backend) CheckGroup(g *art.TrajectoryGroup, cfg *art.TrainConfig) credit.Reason {
	return trainset.CheckGroup(g, cfg)
}

// beginStep returns the entry of a model for a training from its newest step, with its lock for trainings taken.
func (b *Backend) beginStep(op string, m *art.Model) (*entry, error) {
	e, err := b.lock(op, m)
	if err == nil {
		if err = e.own.end(op); err != nil {
			e.training.Unlock()
		}
	}
	return e, err
}

// lock returns the entry of a model that can be trained, with its lock for trainings taken.
func (b *Backend) lock(op string, m *art.Model) (*entry, error) {
	e, err := b.trainable(op, m)
	if err != nil {
		return nil, err
	}
	e.training.Lock()
	if _, err := b.entry(op, m); err != nil { // closed or released meanwhile
		e.training.Unlock()
		return nil, err
	}
	return e, nil
}

// trainable returns the entry of a model that is not frozen.
func (b *Backend) trainable(op string, m *art.Model) (*entry, error) {
	e, err := b.stored(op, m)
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
		opts := b.trainerOptions()
		opts.Programs, opts.Replicas = e.base.training, e.base.trainerReplicas()
		e.trainer = trainer.New(e.policy.target(e.base), opts)
	}
	return e.trainer
}

// trainerOptions are those of all models.
func (b *Backend) trainerOptions() trainer.Options {
	return trainer.Options{
		Device: b.device, FewShapes: graphx.ProfileOf(b.device).SlowCompile, MicroTokens: b.opts.MicroTokens,
		Narrow: b.opts.MicroTokens > 0, Recompute: b.opts.Recompute, Pause: b.pause(),
	}
}

// record completes a record of how an update was made.
func (e *entry) record(m *art.Model, update runs.Update, r updateRecord) *updateRecord {
	r.Groups, r.Context, r.ToolFormat = len(update.Groups), e.base.engine.Context(), m.Options().ToolFormat
	if e.trainer != nil {
		s := e.trainer.Sizes()
		r.MicroTokens, r.Narrow = s.MicroTokens, s.Narrow
	}
	return &r
}

// verified returns the folder of a stored step, after checking its files.
func (e *entry) verified(step int) (dir string, err error) {
	dir, ok := e.run.Checkpoint(step)
	if !ok {
		return "", &art.Error{
			Op: "train", Err: fmt.Errorf("%w: the reference of KL is step %d, which has no checkpoint", art.ErrInvalid, step),
			Hint: "take one of those that Backend.Checkpoints lists, or keep more by ModelOptions.Retention",
		}
	}
	return dir, e.run.Verify(step)
}

// publish commits the next step with its update, and then serves it. record is nil for a step that cannot be made
// again. When it fails, the model stays at the previous step.
func (b *Backend) publish(
	m *art.Model, e *entry, state *trainer.State, update runs.Update, record *updateRecord,
) error {
	step := e.serving.Load().step + 1
	oldPolicy, oldState := e.policy, e.state
	next, err := e.policy.with(state.Params)
	if err != nil {
		return &art.Error{Op: "train", Err: err}
	}
	onDevice, err := next.upload(e.base)
	if err != nil {
		return &art.Error{Op: "train", Err: deviceError(err)}
	}
	write := e.writeCheckpoint(baseName(m))
	if from, ok := e.run.Checkpoint(step - 1); ok && state == oldState {
		write = runs.CopyCheckpoint(from)
	}
	e.policy, e.state = next, state
	err = e.run.CommitUpdate(step, update, func(dir string) error {
		if record == nil {
			return write(dir)
		}
		return errors.Join(write(dir), record.write(dir))
	})
	if err != nil {
		e.policy, e.state = oldPolicy, oldState
		return err
	}
	e.serving.Store(&serving{step: step, adapter: onDevice})
	if next.full() {
		runtime.GC() // the device's memory of the last step is freed with its tensors
	}
	e.committed = time.Now()
	b.opts.Logger.Info("step committed", "model", m.Name(), "step", step)
	b.saySize(m, e, step)
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
