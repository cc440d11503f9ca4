package local

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/internal/trainset"
)

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
		return nil, &art.Error{
			Op: "train dpo", Err: fmt.Errorf("%w: nothing to train on in %s", art.ErrInvalid, quantity.Of(len(pairs),
				"pair")),
			Hint: "both answers of a pair have to fit into the context; the first: " + batch.Skipped[0].Detail,
		}
	}
	if err := b.fit("train dpo", e, batch.Sequences); err != nil {
		return nil, err
	}
	start, step := time.Now(), e.serving.Load().step+1
	state, metrics, err := b.learnPreferences(ctx, m, e, batch, cfg)
	if err != nil {
		return nil, trainError(ctx, "train dpo", err, learningOptions{cfg.LearningRate, cfg.MaxGradNorm})
	}
	groups := art.PreferenceGroups(pairs)
	maps.Copy(metrics, batch.Metrics(groups))
	metrics["data/groups"], metrics["data/groups_trainable"] = float64(len(pairs)), float64(batch.Groups)
	metrics["loss/learning_rate"] = cfg.LearningRate
	b.addMemory(metrics)
	e.addTimes(metrics, groups, start)
	if err := e.addSums(metrics); err != nil {
		return nil, err
	}
	update := runs.Update{Groups: groups, Metrics: metrics}
	if err := b.publish(m, e, state, update, e.record(m, update, updateRecord{DPO: cfg})); err != nil {
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
	b.warnSkipped(m, step, report, batch.SkipNotFinite(report.NotFinite, report.Overflowed))
	b.warnUnmoved(m, step, cfg.LearningRate, report)
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
