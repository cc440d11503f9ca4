package tinker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/trainset"
)

// tokenLoss is a loss of the protocol, and the bounds of its ratio.
type tokenLoss struct {
	name   credit.Loss
	lo, hi float64
}

// CheckGroup says why [Backend.Train] would skip a group as a whole.
func (b *Backend) CheckGroup(g *art.TrajectoryGroup, cfg *art.TrainConfig) credit.Reason {
	return trainset.CheckGroup(g, cfg)
}

// Train makes the next step with a loss that the protocol has: cispo, ppo, grpo, dr_grpo, dapo, importance_sampling,
// and dro on a service that takes token weights. Advantages and weights are computed here. What needs another loss is
// an [art.ErrUnsupported]: levels of ratios, DualClip, MaskRatio, KimiTau, Correction, EntropyBonus, and KL other than
// with Advantage against the base model. If nothing can be trained on, a step with unchanged weights is committed.
func (b *Backend) Train(
	ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig,
) (*art.TrainResult, error) {
	const op = "train"
	if len(groups) == 0 {
		return nil, &art.Error{Op: op, Err: art.ErrNoGroups, Hint: "gather at least one group of two trajectories"}
	}
	loss, err := b.policyLoss(cfg)
	if err != nil {
		return nil, err
	}
	e, err := b.beginStep(ctx, op, m)
	if err != nil {
		return nil, err
	}
	defer e.training.Unlock()
	current := e.serving.Load().step
	set := trainset.FromGroups(groups, cfg, current, b.context(e.base), e.tokenizer.VocabSize())
	metrics := set.Metrics(groups)
	metrics["data/groups"], metrics["data/groups_trainable"] = float64(len(groups)), float64(set.Groups)
	start := time.Now()
	if len(set.Sequences) > 0 {
		l := &learning{
			op: "train", together: 1, epochs: cfg.Epochs, miniBatches: cfg.MiniBatches, loss: loss.name,
			config: loop.LossConfig{},
			adam: loop.AdamW{Beta1: cfg.Beta1, Beta2: cfg.Beta2, Eps: cfg.Eps, WeightDecay: *cfg.WeightDecay,
				GradClipNorm: max(cfg.MaxGradNorm, 0)},
			rate: func(int) float64 { return cfg.LearningRate }, progress: cfg.Progress,
			measure: &measures{value: "loss/policy", nll: "loss/entropy", policy: true, lo: loss.lo, hi: loss.hi},
		}
		switch {
		case loss.name == credit.DRO:
			l.config["beta"] = cfg.DROBeta
		case !math.IsInf(loss.hi, 1):
			l.config["clip_low_threshold"], l.config["clip_high_threshold"] = loss.lo, loss.hi
		}
		l.seed = trainset.Seed(m.Options().Seed, current+1)
		if err = b.normalize(ctx, e, set, cfg, l, metrics); err == nil {
			err = l.run(ctx, b, e)
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(metrics, l.measure.metrics())
		maps.Copy(metrics, trainset.PolicyAge(set.Sequences))
		metrics["loss/learning_rate"] = cfg.LearningRate
	}
	metrics["time/train_s"] = time.Since(start).Seconds()
	stored := runs.Present(groups)
	step, err := b.commit(ctx, e, stored, trainset.RowMetrics(stored, metrics))
	if err != nil {
		return nil, err
	}
	return &art.TrainResult{Step: step, Metrics: metrics, Skipped: set.Skipped, Advantages: set.Advantages}, nil
}

// CheckTrain returns an [art.ErrUnsupported] for what a service cannot compute.
func (b *Backend) CheckTrain(cfg *art.TrainConfig) error {
	_, err := b.policyLoss(cfg)
	return err
}

// policyLoss translates the loss of a configuration, or says what a service cannot compute.
func (b *Backend) policyLoss(cfg *art.TrainConfig) (tokenLoss, error) {
	var loss tokenLoss // without a name there is none
	switch p := cfg.Credit().Policy; {
	case p.Loss == credit.GSPO || p.Loss == credit.Reinforce || p.Loss == credit.CrossEntropy:
	case p.Surrogate(), slices.Contains(credit.Losses(), p.Loss):
		loss.lo, loss.hi = p.Bounds()
		if loss.name = p.Loss; p.Surrogate() { // those with the form of PPO differ in their bounds only
			loss.name = credit.PPO
		}
	}
	var problems []error
	for _, c := range []struct {
		fits bool
		what string
	}{
		{loss.name != "", fmt.Sprintf("the loss %q", cfg.Loss)},
		{cfg.Level == "" || cfg.Level == credit.LevelToken, "Level"},
		{cfg.DualClip == 0, "DualClip"}, {!cfg.MaskRatio, "MaskRatio"}, {cfg.KimiTau == 0, "KimiTau"},
		{cfg.Correction.Method == "", "Correction"}, {cfg.EntropyBonus == 0, "EntropyBonus"},
		{cfg.MicroBatch == 0, "MicroBatch"},
		{cfg.KL.Coef == 0 || cfg.KL.Advantage && cfg.KL.Step == nil && cfg.KL.Lag == 0,
			"KL, unless it has Advantage and the base model as its reference"},
		{loss.name != credit.DRO || b.limits.PolicyWeights, "dro on a service without token weights"},
	} {
		if !c.fits {
			problems = append(problems, errors.New(c.what))
		}
	}
	if len(problems) > 0 {
		return loss, &art.Error{
			Op: "train", Err: fmt.Errorf("%w: a Tinker service does not have %w", art.ErrUnsupported, errors.Join(problems...)),
			Hint: "leave it out of TrainConfig, or train in process",
		}
	}
	return loss, nil
}

// normalize sets the sequences of a training call, with the logprobs that cfg needs besides those of the sampler.
func (b *Backend) normalize(
	ctx context.Context, e *entry, set *trainset.Set, cfg *art.TrainConfig, l *learning, metrics map[string]float64,
) error {
	sequences, err := credit.Normalize(set.Sequences, cfg.Credit().Normalize)
	if err != nil {
		return &art.Error{Op: l.op, Err: err}
	}
	l.sequences = slices.Clone(sequences)
	if cfg.PrecalculateLogprobs {
		lists, err := b.score(ctx, e, l.op, l.sequences)
		if err != nil {
			return err
		}
		for i := range lists {
			l.sequences[i].Old = lists[i]
		}
	}
	if cfg.KL.Coef == 0 {
		return nil
	}
	lists, err := b.scoreBase(ctx, e, l.op, l.sequences)
	if err != nil {
		return err
	}
	for i := range lists {
		l.sequences[i].Reference = lists[i]
	}
	l.sequences, metrics["loss/kl_ref"], err = credit.ShapeByKL(l.sequences, cfg.KL.Coef, cfg.KL.Estimator)
	return err
}

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
