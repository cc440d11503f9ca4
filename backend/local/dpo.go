package local

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/trainer"
)

// TrainDPO makes the next step by direct preference optimization of the adapter, [grpo.PreferenceLoss]. The loss is of
// all that the assistant says after the common prompt, end-of-turn tokens included. The logprobs of the reference are
// computed once, before the first optimizer step.
func (b *Backend) TrainDPO(
	ctx context.Context, m *art.Model, pairs []art.Preference, cfg *art.DPOConfig,
) (*art.TrainResult, error) {
	e, err := b.beginStep("train dpo", m)
	if err != nil {
		return nil, err
	}
	defer e.training.Unlock()
	batch := e.preferences(pairs, e.base.engine.Context())
	if len(batch.sequences) == 0 {
		return nil, &art.Error{
			Op: "train dpo", Err: fmt.Errorf("%w: none of %d pairs can be trained on", art.ErrInvalid, len(pairs)),
			Hint: "both answers of a pair have to fit into the context; the first: " + batch.skipped[0].Detail,
		}
	}
	if err := b.fit("train dpo", e, batch.sequences); err != nil {
		return nil, err
	}
	start, step := time.Now(), e.serving.Load().step+1
	state, metrics, err := b.learnPreferences(ctx, m, e, batch.sequences, cfg)
	if err != nil {
		return nil, trainError(ctx, "train dpo", err, learningOptions{cfg.LearningRate, cfg.MaxGradNorm})
	}
	groups := art.PreferenceGroups(pairs)
	maps.Copy(metrics, batch.metrics(groups))
	metrics["data/groups"], metrics["data/groups_trainable"] = float64(len(pairs)), float64(batch.groups)
	metrics["loss/learning_rate"] = cfg.LearningRate
	e.addTimes(metrics, start)
	if err := e.addSums(metrics); err != nil {
		return nil, err
	}
	update := runs.Update{Groups: groups, Metrics: metrics}
	if err := b.publish(m, e, state, update, e.record(m, update, updateRecord{DPO: cfg})); err != nil {
		return nil, err
	}
	return &art.TrainResult{Step: step, Metrics: metrics, Skipped: batch.skipped}, nil
}

// learnPreferences trains on pairs, and measures what it changed.
func (b *Backend) learnPreferences(
	ctx context.Context, m *art.Model, e *entry, pairs []grpo.Sequence, cfg *art.DPOConfig,
) (*trainer.State, map[string]float64, error) {
	run, step := dpoRun(cfg, len(pairs)/2), e.serving.Load().step+1
	bar := b.progress(m, fmt.Sprintf("dpo %s step %d", m.Name(), step), run.Epochs*run.MiniBatches)
	defer bar.finish()
	run.Progress = bar.update(cfg.Progress)
	state, report, err := e.prefer(ctx, e.learner(b), pairs, cfg, run)
	if err != nil {
		return nil, nil, err
	}
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
		reference = withoutAdapter(e.state)
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

// preferences tokenises pairs: the chosen sequence, then the rejected one. Those of more than limit tokens are skipped.
func (e *entry) preferences(pairs []art.Preference, limit int) *batch {
	out := &batch{limit: limit}
	for i, p := range pairs {
		prompt := p.Prompt()
		chosen, fits := out.answer(i, 0, e, p.Chosen, prompt)
		rejected, both := out.answer(i, 1, e, p.Rejected, prompt)
		if !fits || !both {
			continue
		}
		if !samePrompt(&chosen, &rejected) {
			out.skip(i, -1, art.SkipBadSample, "the template renders the common prompt differently before the two answers")
			continue
		}
		out.sequences = append(out.sequences, chosen, rejected)
		out.groups, out.trained = out.groups+1, out.trained+2
	}
	return out
}

// answer tokenises one side of a pair whose answer begins after prompt messages. It skips what cannot be trained on.
func (b *batch) answer(pair, side int, e *entry, t *art.Trajectory, prompt int) (seq grpo.Sequence, ok bool) {
	ids, mask, err := e.template.TargetFrom(prompt, t.Messages, t.Tools)
	if err != nil {
		b.skip(pair, side, art.SkipBadSample, err.Error())
		return seq, false
	}
	seq = grpo.Sequence{IDs: ids, Trained: mask, Logprobs: make([]float32, len(ids)), Trajectory: 2*pair + side}
	switch {
	case seq.NumTrained() == 0:
		b.skip(pair, side, art.SkipNoSamples, "the answer has no tokens")
	case seq.NumInputs() > b.limit:
		b.skip(pair, side, art.SkipTooLong, fmt.Sprintf("%d tokens, the context has %d", seq.NumInputs(), b.limit))
	default:
		return seq, true
	}
	return seq, false
}

// samePrompt reports whether the tokens before the first trained one are equal.
func samePrompt(a, b *grpo.Sequence) bool {
	n := slices.Index(a.Trained, true)
	return n == slices.Index(b.Trained, true) && slices.Equal(a.IDs[:n], b.IDs[:n])
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
	return grpo.PreferenceLoss{Beta: cfg.Beta, Smoothing: cfg.LabelSmoothing, Mean: cfg.LengthNormalized}
}
