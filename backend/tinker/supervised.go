package tinker

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/trainset"
)

// TrainSFT makes the next step by supervised training: the mean negative log-likelihood of what the assistant says in
// the chosen turns, end-of-turn tokens included. Validation is an [art.ErrUnsupported].
func (b *Backend) TrainSFT(
	ctx context.Context, m *art.Model, trajectories []*art.Trajectory, cfg *art.SFTConfig,
) (*art.TrainResult, error) {
	const op = "train sft"
	e, err := b.beginStep(ctx, op, m)
	if err != nil {
		return nil, err
	}
	defer e.training.Unlock()
	if len(cfg.Validation) > 0 {
		return nil, &art.Error{
			Op: op, Err: fmt.Errorf("%w: Validation", art.ErrUnsupported),
			Hint: "leave it out of SFTConfig, and call Model.Forward with the loss cross_entropy",
		}
	}
	set := trainset.FromConversations(e.template, trajectories, cfg.Turns, b.context(e.base))
	if len(set.Sequences) == 0 {
		return nil, nothing(op, len(trajectories), "trajectories", set)
	}
	l := supervisedLearning(cfg, len(set.Sequences))
	l.sequences = set.Sequences
	l.measure = &measures{value: "loss/sft", nll: "loss/sft"}
	groups := runs.Present([]*art.TrajectoryGroup{{Trajectories: trajectories}})
	return b.finish(ctx, e, l, set, groups)
}

// finish runs a training call, and commits the step.
func (b *Backend) finish(
	ctx context.Context, e *entry, l *learning, set *trainset.Set, groups []*art.TrajectoryGroup,
) (*art.TrainResult, error) {
	start := time.Now()
	if err := l.run(ctx, b, e); err != nil {
		return nil, err
	}
	metrics := set.Metrics(groups)
	maps.Copy(metrics, l.measure.metrics())
	if l.after != nil {
		more, err := l.after(ctx)
		if err != nil {
			return nil, err
		}
		maps.Copy(metrics, more)
	}
	metrics["loss/learning_rate"], metrics["time/train_s"] = l.adam.LearningRate, time.Since(start).Seconds()
	step, err := b.commit(ctx, e, groups, metrics)
	if err != nil {
		return nil, err
	}
	return &art.TrainResult{Step: step, Metrics: metrics, Skipped: set.Skipped}, nil
}

// nothing is the error of data that cannot be trained on.
func nothing(op string, n int, what string, set *trainset.Set) error {
	hint := "each needs an assistant message and has to fit into the context"
	if len(set.Skipped) > 0 {
		hint += "; the first: " + set.Skipped[0].Detail
	}
	return &art.Error{Op: op, Err: fmt.Errorf("%w: none of %d %s can be trained on", art.ErrInvalid, n, what), Hint: hint}
}

// supervisedLearning translates a configuration with defaults filled in, for n histories or pairs.
func supervisedLearning(cfg *art.SFTConfig, n int) *learning {
	batches := (n-1)/cfg.BatchSize + 1
	return &learning{
		op: "train sft", together: 1, epochs: cfg.Epochs, miniBatches: batches, seed: cfg.Seed, loss: credit.CrossEntropy,
		adam: loop.AdamW{LearningRate: cfg.LearningRate, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: cfg.WeightDecay,
			GradClipNorm: max(cfg.MaxGradNorm, 0)},
		rate: cfg.Rates(batches * cfg.Epochs), progress: cfg.Progress,
	}
}

// TrainDPO makes the next step by direct preference optimization, [credit.Preference]: before each optimizer step a
// forward pass at the service says how likely the answers are, and the derivatives of the loss, computed here, become
// weights of cross_entropy.
func (b *Backend) TrainDPO(
	ctx context.Context, m *art.Model, pairs []art.Preference, cfg *art.DPOConfig,
) (*art.TrainResult, error) {
	const op = "train dpo"
	e, err := b.beginStep(ctx, op, m)
	if err != nil {
		return nil, err
	}
	defer e.training.Unlock()
	set := trainset.FromPreferences(e.template, pairs, b.context(e.base))
	if len(set.Sequences) == 0 {
		return nil, nothing(op, len(pairs), "pairs", set)
	}
	reference := b.score
	if cfg.ReferenceBase {
		reference = b.scoreBase
	}
	lists, err := reference(ctx, e, op, set.Sequences)
	if err != nil {
		return nil, err
	}
	for i := range lists {
		set.Sequences[i].Reference = lists[i]
	}
	l := supervisedLearning(&art.SFTConfig{
		LearningRate: cfg.LearningRate, BatchSize: cfg.BatchSize, Epochs: cfg.Epochs, Warmup: cfg.Warmup, Decay: cfg.Decay,
		Schedule: cfg.Schedule, MaxGradNorm: cfg.MaxGradNorm, WeightDecay: cfg.WeightDecay, Seed: cfg.Seed,
		Progress: cfg.Progress,
	}, len(set.Sequences)/2)
	l.op, l.together, l.sequences = op, 2, set.Sequences
	l.measure = &measures{value: "loss/dpo", nll: "loss/dpo_nll"}
	loss := credit.Preference{Beta: cfg.Beta, Smoothing: cfg.LabelSmoothing, Mean: cfg.LengthNormalized}
	l.prepare = func(ctx context.Context, part []credit.Sequence) ([]credit.Sequence, float64, error) {
		logprobs, err := b.score(ctx, e, op, part)
		if err != nil {
			return nil, 0, err
		}
		linear, value := loss.Linearize(part, logprobs)
		for i := range linear { // cross_entropy has weights only
			linear[i].Weight *= linear[i].Advantage
		}
		return linear, value, nil
	}
	l.after = func(ctx context.Context) (map[string]float64, error) {
		logprobs, err := b.score(ctx, e, op, set.Sequences)
		if err != nil {
			return nil, err
		}
		return loss.Measure(set.Sequences, logprobs), nil
	}
	return b.finish(ctx, e, l, set, art.PreferenceGroups(pairs))
}
