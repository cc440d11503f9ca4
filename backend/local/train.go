package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
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
	metrics := map[string]float64{"data/groups": float64(len(groups)), "data/groups_trainable": float64(batch.Groups)}
	step := current + 1
	start := time.Now()
	state := e.state
	var ratios []float32
	if len(batch.Sequences) > 0 {
		bar := b.progress(m, fmt.Sprintf("train %s step %d", m.Name(), step), cfg.Epochs*cfg.MiniBatches)
		defer bar.finish()
		u := policyUpdate{
			cfg: cfg, batch: batch.Sequences, run: policyRun(cfg, b.lossOf(cfg), trainset.Seed(m.Options().Seed, step)),
			step: step, checkpoint: e.verified,
		}
		u.run.Progress = bar.update(cfg.Progress)
		next, report, err := u.train(ctx, e, e.learner(b), metrics)
		if err != nil {
			return nil, err
		}
		state, ratios = next, report.Ratios
		b.warn(m, step, cfg.LearningRate, report, batch.SkipNotFinite(report.NotFinite, report.Overflowed))
	}
	maps.Copy(metrics, batch.Metrics(groups))
	if err := b.complete(e, metrics, groups, start); err != nil {
		return nil, err
	}
	update := runs.Update{Groups: runs.Present(groups), Metrics: trainset.RowMetrics(groups, metrics)}
	if err := b.publish(m, e, state, update, &updateRecord{Train: cfg}); err != nil {
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
		opts.Programs = e.base.training
		for _, r := range e.base.replicas {
			opts.Replicas = append(opts.Replicas, trainer.Replica{Device: r.device, Params: r.params, Programs: r.training})
		}
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

// verified returns the folder of a stored step, after checking its files.
func (e *entry) verified(step int) (dir string, err error) {
	dir, ok := e.run.Checkpoint(step)
	if !ok {
		hint := "take one of those that Backend.Checkpoints lists, or keep more by ModelOptions.Retention"
		return "", invalid("train", hint, "the reference of KL is step %d, which has no checkpoint", step)
	}
	return dir, e.run.Verify(step)
}

// publish commits the next step with its update, and then serves it. record has the configuration of the training, and
// is nil for a step that cannot be made again. When it fails, the model stays at the previous step.
func (b *Backend) publish(
	m *art.Model, e *entry, state *trainer.State, update runs.Update, record *updateRecord,
) error {
	if record != nil {
		record.Groups, record.Context = len(update.Groups), e.base.engine.Context()
		record.ToolFormat = m.Options().ToolFormat
		if e.trainer != nil {
			s := e.trainer.Sizes()
			record.MicroTokens, record.Narrow = s.MicroTokens, s.Narrow
		}
	}
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

// Losses lists the names of [Options].Losses.
func (b *Backend) Losses() []credit.Loss {
	var names []credit.Loss
	for _, l := range b.opts.Losses {
		names = append(names, credit.Loss(l.Spec().Key))
	}
	return names
}

// checkLosses lists the problems of losses that a program brings.
func checkLosses(losses []grpo.Loss) error {
	var errs []error
	seen := credit.Losses()
	for _, l := range []grpo.Loss{grpo.SupervisedLoss{}, grpo.PreferenceLoss{}} { // their graphs are kept by these keys
		seen = append(seen, credit.Loss(l.Spec().Key))
	}
	for i, l := range losses {
		if l == nil {
			errs = append(errs, fmt.Errorf("loss %d is nil", i))
			continue
		}
		if err := l.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("loss %d: %w", i, err))
			continue
		}
		name := credit.Loss(l.Spec().Key)
		if _, ok := l.(grpo.BatchLoss); ok {
			errs = append(errs, fmt.Errorf("loss %q is a grpo.BatchLoss, which Train does not support", name))
		}
		switch {
		case name == "":
			errs = append(errs, fmt.Errorf("loss %d has no key", i))
		case slices.Contains(seen, name):
			errs = append(errs, fmt.Errorf("loss %d has the key %q of another loss", i, name))
		}
		seen = append(seen, name)
		if len(l.Spec().Metrics) == 0 {
			errs = append(errs, fmt.Errorf("loss %q declares no metrics", name))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return invalid("open", "each of Options.Losses needs a key of its own, which TrainConfig.Loss names", "%w",
		errors.Join(errs...))
}

// lossOf returns the loss of a valid configuration with defaults filled in.
func (b *Backend) lossOf(cfg *art.TrainConfig) grpo.Loss {
	var loss grpo.Loss = grpo.PolicyLoss(cfg.Credit().Policy)
	for _, l := range b.opts.Losses {
		if credit.Loss(l.Spec().Key) == cfg.Loss {
			loss = l
		}
	}
	if c := cfg.Correction; c.Method != "" {
		loss = grpo.Corrected{Loss: loss, Correction: c, FromOld: cfg.PrecalculateLogprobs}
	}
	penalty := grpo.Penalized{Loss: loss, Estimator: cfg.KL.Estimator, Entropy: cfg.EntropyBonus}
	if !cfg.KL.Advantage {
		penalty.KL = cfg.KL.Coef
	}
	if penalty.KL == 0 && penalty.Entropy == 0 {
		return loss
	}
	return penalty
}

// CheckTrain refuses a reference that neither a penalty nor the loss uses.
func (b *Backend) CheckTrain(cfg *art.TrainConfig) error {
	if cfg.KL.Coef != 0 || cfg.KL == (credit.KL{}) || b.lossOf(cfg).Spec().Reference {
		return nil
	}
	return invalid("train", "leave out KL, or set KL.Coef",
		"KL has options and no coefficient, and loss %q uses no reference", cfg.Loss)
}

// LearningRate is the default of a model, by the width of its base and what is trained of it:
//
//	1e-3 · 128 / hidden_size            of an adapter
//	1e-4 · 128 / hidden_size            of all weights
//
// docs/tuning.md says where the rule comes from.
func (b *Backend) LearningRate(m *art.Model) (float64, error) {
	e, err := b.trainable("learning rate", m)
	if err != nil {
		return 0, err
	}
	e.training.Lock()
	defer e.training.Unlock()
	return trainer.DefaultRate(e.base.config.HiddenSize, e.policy.full()), nil
}
