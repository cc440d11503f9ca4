package art

import (
	"cmp"
	"context"
	"reflect"
)

// Preference is a pair of answers to one prompt. The prompt is the messages that both conversations begin with; what
// follows in each, an assistant message first, is the answer.
type Preference struct {
	Chosen   *Trajectory
	Rejected *Trajectory
}

// Prompt returns the number of messages of the common prompt.
func (p Preference) Prompt() int {
	n := 0
	for n < min(len(p.Chosen.Messages), len(p.Rejected.Messages)) &&
		sameMessage(p.Chosen.Messages[n], p.Rejected.Messages[n]) {
		n++
	}
	return n
}

// sameMessage compares what a template renders; the Sample of a message tells who wrote it, not what it says.
func sameMessage(a, b Message) bool {
	a.Sample, b.Sample = nil, nil
	return reflect.DeepEqual(a, b)
}

func (p Preference) check(found *problems, i int) {
	if p.Chosen == nil || p.Rejected == nil {
		found.check(false, "pair %d has no chosen or no rejected trajectory", i)
		return
	}
	found.check(len(p.Chosen.AdditionalHistories)+len(p.Rejected.AdditionalHistories) == 0,
		"pair %d has additional histories: make a pair of each", i)
	found.check(reflect.DeepEqual(p.Chosen.Tools, p.Rejected.Tools), "pair %d has different tools", i)
	n := p.Prompt()
	found.check(n > 0, "pair %d has no common prompt: the first messages differ", i)
	answers := func(t *Trajectory) bool { return n < len(t.Messages) && t.Messages[n].Role == RoleAssistant }
	found.check(n == 0 || answers(p.Chosen) && answers(p.Rejected),
		"pair %d: after %d common messages an assistant message must follow in both", i, n)
}

// TrainDPO makes the next step of the model by direct preference optimization: the chosen answer of each pair becomes
// likelier, relative to the rejected one, than it is under a reference policy. cfg may be nil: defaults.
//
// It returns [ErrNotRegistered], [ErrFrozen], [ErrUnsupported] when the backend is no driver.DPOTrainer, and
// [ErrInvalid] listing every problem of cfg, or of the pairs: each needs two trajectories without additional histories,
// with the same tools and a common prompt, after which both have an assistant message. Updates that are not finite are
// skipped, as by [Model.Train]: the group of a [Skip] is the pair, trajectory 0 of it the chosen one, 1 the rejected
// one.
func (m *Model) TrainDPO(ctx context.Context, pairs []Preference, cfg *DPOConfig) (*TrainResult, error) {
	trainer, err := trainable[dpoTrainer](m, "train dpo", "driver.DPOTrainer")
	if err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(pairs) == 0 {
		return nil, problems{"no pairs"}.err("train dpo", "give at least one with a chosen and a rejected trajectory")
	}
	var p problems
	for i, pair := range pairs {
		pair.check(&p, i)
	}
	const hint = "a pair is two conversations with the same first messages and different answers"
	if err := p.err("train dpo", hint); err != nil {
		return nil, err
	}
	given, groups := deref(cfg).LearningRate, PreferenceGroups(pairs)
	cfg = cfg.WithDefaults()
	e := TrainStart{Groups: len(pairs), DPO: cfg}
	l, err := m.startLearning(groups, given, &cfg.LearningRate, &cfg.Progress, e)
	if err != nil {
		return nil, err
	}
	return l.end(trainer.TrainDPO(ctx, m, pairs, cfg))
}

// PreferenceGroups returns each pair as a group of two trajectories, the chosen one first: how pairs are counted and
// stored.
func PreferenceGroups(pairs []Preference) []*TrajectoryGroup {
	groups := make([]*TrajectoryGroup, len(pairs))
	for i, p := range pairs {
		groups[i] = &TrajectoryGroup{Trajectories: []*Trajectory{p.Chosen, p.Rejected}}
	}
	return groups
}

// DPOConfig holds the options of training on preferences (direct preference optimization, Rafailov et al. 2023,
// https://arxiv.org/abs/2305.18290). Zero values and a nil *DPOConfig are the defaults. With r = Beta·Σ d over the
// tokens of an answer, d = new - reference, and m = r of the chosen one - r of the rejected one, the loss is the mean
// over pairs of -(1-LabelSmoothing)·log σ(m) - LabelSmoothing·log σ(-m). Take it where pairs are at hand and no reward
// is; with a reward, [Model.Train] learns from what the model itself does.
type DPOConfig struct {
	// Beta is how strongly the policy is kept close to the reference. Default 0.1, and 5 with LengthNormalized, as in the
	// papers. 0.01 to 0.5 is usual; more where train/chosen_logprob_change falls far below 0.
	Beta float64
	// LabelSmoothing is the chance that a pair is labelled the wrong way round, 0 up to below 0.5 (conservative DPO,
	// Mitchell 2023, https://ericmitchell.ai/cdpo.pdf). Default 0; 0.1 for noisy labels, such as a judge's.
	LabelSmoothing float64
	// LengthNormalized divides r by the number of tokens of the answer (Tülu 3, https://arxiv.org/abs/2411.15124), so
	// that long answers do not count more. Default false. Where one side is much longer.
	LengthNormalized bool
	// ReferenceBase takes the base model without an adapter as the reference. By default it is the step that training
	// starts from, as it was before the call: several calls then move on from each other's result. Set it for several
	// calls on one set of pairs.
	ReferenceBase bool
	// LearningRate of loop.AdamW. Default: that of the backend, if it is a driver.RateChooser, and otherwise 5e-6.
	LearningRate float64
	// BatchSize is the greatest number of pairs in an optimizer step; an epoch is split evenly. Default 8.
	BatchSize int
	// Epochs over the data. Default 1.
	Epochs int
	// Warmup is the fraction of all optimizer steps, 0 to 1, over which the learning rate rises from 0. Default 0.
	Warmup float64
	// Decay is the fraction of the learning rate, 0 to 1, that it falls towards. nil is 0 for [ScheduleLinear] and
	// [ScheduleCosine]. [ScheduleConstant] has none: setting another one than 1 is an error.
	Decay *float64
	// Schedule is how the learning rate changes after the warm-up. Default [ScheduleConstant], and [ScheduleLinear] if
	// Decay is set.
	Schedule Schedule
	// MaxGradNorm clips the global norm of the gradient. Default 1; negative is off.
	MaxGradNorm float64
	// WeightDecay is loop.AdamW's, decoupled. Default 0.
	WeightDecay float64
	// Seed shuffles the pairs. Default 0.
	Seed uint64
	// Progress is called after each optimizer step. May be nil.
	Progress func(TrainProgress) `json:"-"`
}

// WithDefaults returns a copy of c in which every default that its fields document is filled in. A nil c is all
// defaults.
func (c *DPOConfig) WithDefaults() *DPOConfig {
	d := deref(c)
	beta := 0.1
	if d.LengthNormalized {
		beta = 5
	}
	d.Beta = cmp.Or(d.Beta, beta)
	d.LearningRate = cmp.Or(d.LearningRate, 5e-6)
	d.BatchSize = cmp.Or(d.BatchSize, 8)
	d.Epochs = cmp.Or(d.Epochs, 1)
	d.Schedule, d.Decay = fillSchedule(d.Schedule, d.Decay)
	d.MaxGradNorm = cmp.Or(d.MaxGradNorm, 1)
	return &d
}

// Validate returns an [ErrInvalid] that lists every problem of c. A nil c is valid. [Model.TrainDPO] calls it.
func (c *DPOConfig) Validate() error {
	if c == nil {
		return nil
	}
	var p problems
	p.notNegative("beta", &c.Beta)
	p.check(c.LabelSmoothing >= 0 && c.LabelSmoothing < 0.5, "label smoothing is %v, want 0 <= label smoothing < 0.5",
		c.LabelSmoothing)
	p.notNegative("learning rate", &c.LearningRate)
	p.check(c.BatchSize >= 0, "batch size is %d, want >= 0", c.BatchSize)
	p.check(c.Epochs >= 0, "epochs is %d, want >= 0", c.Epochs)
	p.check(c.Warmup >= 0 && c.Warmup <= 1, "warmup is %v, want 0 <= warmup <= 1", c.Warmup)
	checkSchedule(&p, c.Schedule, c.Decay)
	p.check(finite(c.MaxGradNorm), "max grad norm is %v, want a finite number", c.MaxGradNorm)
	p.notNegative("weight decay", &c.WeightDecay)
	return p.err("train dpo", configHint)
}
