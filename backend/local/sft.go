package local

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/internal/trainset"
)

// TrainSFT makes the next step by supervised training of the adapter: the mean negative log-likelihood of what the
// assistant says in the chosen turns, end-of-turn tokens included. Updates that are not finite are skipped, as by
// [Backend.Train].
func (b *Backend) TrainSFT(
	ctx context.Context, m *art.Model, trajectories []*art.Trajectory, cfg *art.SFTConfig,
) (*art.TrainResult, error) {
	e, err := b.beginStep("train sft", m)
	if err != nil {
		return nil, err
	}
	defer e.training.Unlock()
	batch := trainset.FromConversations(e.template, trajectories, cfg.Turns, e.base.engine.Context())
	if len(batch.Sequences) == 0 {
		return nil, invalid("train sft", "each needs an assistant message and has to fit into the context",
			"nothing to train on in %s", quantity.Of(len(trajectories), "trajectory"))
	}
	validation, err := b.validation(m, e, cfg)
	if err != nil {
		return nil, err
	}
	if err := b.fit("train sft", e, slices.Concat(batch.Sequences, validation)); err != nil {
		return nil, err
	}
	step := e.serving.Load().step + 1
	run := sftRun(cfg, len(batch.Sequences))
	bar := b.progress(m, fmt.Sprintf("sft %s step %d", m.Name(), step), run.Epochs*run.MiniBatches)
	defer bar.finish()
	run.Progress = bar.update(cfg.Progress)
	start := time.Now()
	state, report, err := e.learner(b).Train(ctx, e.state, batch.Sequences, run)
	if err != nil {
		return nil, trainError(ctx, "train sft", err, cfg.LearningRate, cfg.MaxGradNorm)
	}
	b.warn(m, step, cfg.LearningRate, report, batch.SkipNotFinite(report.NotFinite, report.Overflowed))
	groups := runs.Present([]*art.TrajectoryGroup{{Trajectories: trajectories}})
	metrics := batch.Metrics(groups)
	maps.Copy(metrics, reportMetrics(*report))
	if err := e.validate(ctx, e.learner(b), state, validation, metrics); err != nil {
		return nil, err
	}
	metrics["loss/learning_rate"] = cfg.LearningRate
	if err := b.complete(e, metrics, groups, start); err != nil {
		return nil, err
	}
	update := runs.Update{Groups: groups, Metrics: metrics}
	if err := b.publish(m, e, state, update, &updateRecord{SFT: cfg}); err != nil {
		return nil, err
	}
	return &art.TrainResult{Step: step, Metrics: metrics, Skipped: batch.Skipped}, nil
}

// validation returns the sequences that are not trained on, and warns of those that are left out. That there are none
// is an error when there should be.
func (b *Backend) validation(m *art.Model, e *entry, cfg *art.SFTConfig) ([]grpo.Sequence, error) {
	if len(cfg.Validation) == 0 {
		return nil, nil
	}
	set := trainset.FromConversations(e.template, cfg.Validation, cfg.Turns, e.base.engine.Context())
	if len(set.Sequences) > 0 {
		if n := len(set.Skipped); n > 0 && n != e.leftOut { // once, not for each step
			e.leftOut = n
			b.opts.Logger.Warn("loss/validation leaves out histories of Validation", "model", m.Name(), "histories", n,
				"first", fmt.Sprintf("trajectory %d: %s", set.Skipped[0].Trajectory, set.Skipped[0].Detail))
		}
		return set.Sequences, nil
	}
	hint := "each needs an assistant message and has to fit into the context; the first: " + set.Skipped[0].Detail
	return nil, invalid("train sft", hint, "no loss of %s of Validation", quantity.Of(len(cfg.Validation), "trajectory"))
}

// validate adds the loss of sequences that were not trained on, when there are any.
func (e *entry) validate(
	ctx context.Context, t *trainer.Trainer, state *trainer.State, sequences []grpo.Sequence, metrics map[string]float64,
) error {
	if len(sequences) == 0 {
		return nil
	}
	lists, err := t.Logprobs(ctx, state, sequences, 0)
	if err != nil {
		return err
	}
	sum := 0.0
	for _, list := range lists { // 0 where nothing is trained
		for _, logprob := range list {
			sum -= float64(logprob)
		}
	}
	metrics["loss/validation"] = sum / float64(credit.NumTrained(sequences))
	return nil
}

// sftRun translates a configuration with defaults filled in.
func sftRun(cfg *art.SFTConfig, n int) trainer.Run {
	batches := (n-1)/cfg.BatchSize + 1 // rounded up; n + BatchSize could overflow
	return trainer.Run{
		Loss:      grpo.SupervisedLoss{},
		Optimizer: grpo.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: cfg.WeightDecay, MaxGradNorm: cfg.MaxGradNorm},
		Rate:      cfg.Rates(batches * cfg.Epochs),
		Epochs:    cfg.Epochs, MiniBatches: batches, Seed: cfg.Seed,
	}
}

// TrainDPO makes the next step by direct preference optimization of the adapter, [grpo.PreferenceLoss]. The loss is of
// all that the assistant says after the common prompt, end-of-turn tokens included. The logprobs of the reference are
// computed once, before the first optimizer step. Updates that are not finite are skipped, as by [Backend.Train].
func (b *Backend) TrainDPO(
	ctx context.Context, m *art.Model, pairs []art.Preference, cfg *art.DPOConfig,
) (*art.TrainResult, error) {
	e, err := b.beginStep("train dpo", m)
	if err != nil {
		return nil, err
	}
	defer e.training.Unlock()
	batch := trainset.FromPreferences(e.template, pairs, e.base.engine.Context())
	if len(batch.Sequences) == 0 {
		hint := "both answers of a pair have to fit into the context; the first: " + batch.Skipped[0].Detail
		return nil, invalid("train dpo", hint, "nothing to train on in %s", quantity.Of(len(pairs), "pair"))
	}
	if err := b.fit("train dpo", e, batch.Sequences); err != nil {
		return nil, err
	}
	start, step := time.Now(), e.serving.Load().step+1
	state, metrics, err := b.learnPreferences(ctx, m, e, batch, cfg)
	if err != nil {
		return nil, trainError(ctx, "train dpo", err, cfg.LearningRate, cfg.MaxGradNorm)
	}
	groups := art.PreferenceGroups(pairs)
	maps.Copy(metrics, batch.Metrics(groups))
	metrics["data/groups"], metrics["data/groups_trainable"] = float64(len(pairs)), float64(batch.Groups)
	metrics["loss/learning_rate"] = cfg.LearningRate
	if err := b.complete(e, metrics, groups, start); err != nil {
		return nil, err
	}
	update := runs.Update{Groups: groups, Metrics: metrics}
	if err := b.publish(m, e, state, update, &updateRecord{DPO: cfg}); err != nil {
		return nil, err
	}
	return &art.TrainResult{Step: step, Metrics: metrics, Skipped: batch.Skipped}, nil
}

// learnPreferences trains on pairs, notes those of skipped updates, and measures what it changed.
func (b *Backend) learnPreferences(
	ctx context.Context, m *art.Model, e *entry, batch *trainset.Set, cfg *art.DPOConfig,
) (*trainer.State, map[string]float64, error) {
	pairs := batch.Sequences
	run, step := dpoRun(cfg, len(pairs)/2), e.serving.Load().step+1
	bar := b.progress(m, fmt.Sprintf("dpo %s step %d", m.Name(), step), run.Epochs*run.MiniBatches)
	defer bar.finish()
	run.Progress = bar.update(cfg.Progress)
	state, report, err := e.prefer(ctx, e.learner(b), pairs, cfg, run)
	if err != nil {
		return nil, nil, err
	}
	b.warn(m, step, cfg.LearningRate, report, batch.SkipNotFinite(report.NotFinite, report.Overflowed))
	after, err := e.learner(b).Logprobs(ctx, state, pairs, 0)
	if err != nil {
		return nil, nil, err
	}
	metrics := reportMetrics(*report)
	maps.Copy(metrics, preferenceLoss(cfg).Measure(pairs, after))
	return state, metrics, nil
}

// prefer computes the state after a training on pairs, whose reference logprobs it fills in.
func (e *entry) prefer(
	ctx context.Context, t *trainer.Trainer, pairs []grpo.Sequence, cfg *art.DPOConfig, run trainer.Run,
) (*trainer.State, *trainer.Report, error) {
	reference := e.state
	if cfg.ReferenceBase {
		var err error
		if reference, err = e.policy.baseState(t, e.base, e.state); err != nil {
			return nil, nil, err
		}
	}
	logprobs, err := t.Logprobs(ctx, reference, pairs, 0)
	if err != nil {
		return nil, nil, err
	}
	for i := range pairs {
		pairs[i].Reference = logprobs[i]
	}
	return t.Train(ctx, e.state, pairs, run)
}

// dpoRun translates a configuration with defaults filled in, for n pairs.
func dpoRun(cfg *art.DPOConfig, n int) trainer.Run {
	run := sftRun(&art.SFTConfig{
		LearningRate: cfg.LearningRate, BatchSize: cfg.BatchSize, Epochs: cfg.Epochs, Warmup: cfg.Warmup, Decay: cfg.Decay,
		Schedule:    cfg.Schedule,
		MaxGradNorm: cfg.MaxGradNorm, WeightDecay: cfg.WeightDecay, Seed: cfg.Seed,
	}, n)
	run.Loss = preferenceLoss(cfg)
	return run
}

// preferenceLoss translates a configuration.
func preferenceLoss(cfg *art.DPOConfig) grpo.PreferenceLoss {
	return grpo.PreferenceLoss{Preference: credit.Preference{
		Beta: cfg.Beta, Smoothing: cfg.LabelSmoothing, Mean: cfg.LengthNormalized,
	}}
}
