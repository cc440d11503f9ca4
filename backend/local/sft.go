package local

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/trainer"
)

// TrainSFT makes the next step by supervised training of the adapter: the mean negative log-likelihood of all that the
// assistant says, end-of-turn tokens included.
func (b *Backend) TrainSFT(
	ctx context.Context, m *art.Model, trajectories []*art.Trajectory, cfg *art.SFTConfig,
) (*art.TrainResult, error) {
	e, err := b.beginStep("train sft", m)
	if err != nil {
		return nil, err
	}
	defer e.training.Unlock()
	batch := b.targets(e, trajectories, e.base.engine.Context())
	if len(batch.sequences) == 0 {
		return nil, &art.Error{
			Op: "train sft", Err: fmt.Errorf("%w: none of %d trajectories can be trained on", art.ErrInvalid, len(trajectories)),
			Hint: "each needs an assistant message and has to fit into the context",
		}
	}
	if err := b.fit("train sft", e, batch.sequences); err != nil {
		return nil, err
	}
	step := e.serving.Load().step + 1
	run := sftRun(cfg, len(batch.sequences))
	bar := b.progress(m, fmt.Sprintf("sft %s step %d", m.Name(), step), run.Epochs*run.MiniBatches)
	defer bar.finish()
	run.Progress = bar.update(cfg.Progress)
	start := time.Now()
	state, report, err := e.learner(b).Train(ctx, e.state, batch.sequences, run)
	if err != nil {
		return nil, trainError(ctx, "train sft", err, learningOptions{cfg.LearningRate, cfg.MaxGradNorm})
	}
	b.warnUnmoved(m, step, cfg.LearningRate, report)
	groups := present([]*art.TrajectoryGroup{{Trajectories: trajectories}})
	metrics := batch.metrics(groups)
	maps.Copy(metrics, reportMetrics(*report))
	metrics["loss/learning_rate"] = cfg.LearningRate
	e.addTimes(metrics, start)
	if err := e.addSums(metrics); err != nil {
		return nil, err
	}
	update := runs.Update{Groups: groups, Metrics: metrics}
	if err := b.publish(m, e, state, update, e.record(m, update, updateRecord{SFT: cfg})); err != nil {
		return nil, err
	}
	return &art.TrainResult{Step: step, Metrics: metrics, Skipped: batch.skipped}, nil
}

// targets tokenises conversations with their targets. Those of more than limit tokens are skipped.
func (b *Backend) targets(e *entry, trajectories []*art.Trajectory, limit int) *batch {
	out := &batch{limit: limit}
	for i, t := range trajectories {
		if t == nil {
			out.skip(0, i, art.SkipNoSamples, "the trajectory is nil")
			continue
		}
		before := len(out.sequences)
		for _, h := range t.Histories() {
			out.addTarget(i, e, h)
		}
		if len(out.sequences) > before {
			out.trained++
		}
	}
	return out
}

func (b *batch) addTarget(i int, e *entry, h *art.History) {
	ids, mask, err := e.template.Target(h.Messages, h.Tools)
	if err != nil {
		b.skip(0, i, art.SkipBadSample, err.Error())
		return
	}
	seq := grpo.Sequence{IDs: ids, Trained: mask, Logprobs: make([]float32, len(ids)), Advantage: 1, Weight: 1,
		Trajectory: i}
	switch {
	case seq.NumTrained() == 0:
		b.skip(0, i, art.SkipNoSamples, "no assistant message")
	case seq.NumInputs() > b.limit:
		b.skip(0, i, art.SkipTooLong, fmt.Sprintf("%d tokens, the context has %d", seq.NumInputs(), b.limit))
	default:
		b.sequences = append(b.sequences, seq)
	}
}

// sftRun translates a configuration with defaults filled in.
func sftRun(cfg *art.SFTConfig, n int) trainer.Run {
	batches := (n-1)/cfg.BatchSize + 1 // rounded up; n + BatchSize could overflow
	schedule := art.RateSchedule{
		Rate: cfg.LearningRate, Steps: batches * cfg.Epochs, Warmup: cfg.Warmup, Decay: *cfg.Decay, Shape: cfg.Schedule,
	}
	return trainer.Run{
		Loss:      grpo.SupervisedLoss{},
		Optimizer: grpo.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: cfg.WeightDecay, MaxGradNorm: cfg.MaxGradNorm},
		Rate:      schedule.At,
		Epochs:    cfg.Epochs, MiniBatches: batches, Seed: cfg.Seed,
	}
}
