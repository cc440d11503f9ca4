package loop

import (
	"context"
	"maps"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/problems"
)

// Trainer is a [art.Backend] with the primitives of training, for a loop of one's own: [ForwardBackward],
// [OptimStep], [SaveWeights], [LoadWeights], [art.Model.Publish] and [art.Model.Snapshot]. Names, losses and
// sums are those of the Tinker API, so that the same loop runs on such a service, and a server of it on any Trainer.
//
// Beside the step that answers requests, a registered model has a training state: weights, the moments of the
// optimizer, and gradients that have been added up. It begins as the newest step, without gradients. ForwardBackward
// and OptimStep change it and nothing else; Publish makes it the next step. What is not published or saved ends with
// the process. Several models on one base have training states of their own.
//
// The backend's other ways to make a step ([art.Model.Train], [art.Model.TrainSFT], [art.Model.TrainDPO],
// [art.Model.Restore]) begin at the newest step. They are an [art.ErrInvalid] while the training state has updates or
// gradients that are not published: publish it, or load the newest step again.
//
// Calls for one model are executed one at a time, and each takes effect completely or, when it returns an error, not at
// all. Concurrent calls are in no particular order: who needs one waits for each call before the next.
type Trainer interface {
	// Forward computes what ForwardBackward returns, and changes nothing. Arguments are valid for [Forward], and
	// config has every key of the loss. An id that the vocabulary lacks and a datum that is too long for the model or its
	// memory are an [art.ErrInvalid] before anything is computed.
	Forward(ctx context.Context, m *art.Model, data []Datum, loss credit.Loss, config LossConfig) (*ForwardResult, error)
	// ForwardBackward computes the loss of data and adds its gradient to those of the training state.
	ForwardBackward(
		ctx context.Context, m *art.Model, data []Datum, loss credit.Loss, config LossConfig,
	) (*ForwardResult, error)
	// OptimStep makes one update of the weights with the gradients that were added up, none of which is a gradient of 0,
	// and drops them.
	OptimStep(ctx context.Context, m *art.Model, adamw AdamW) (*OptimResult, error)
	// SaveWeights stores the training state of m, without its gradients, under a name that m has not used for another one.
	// Without optimizer only the weights are stored. path is what LoadWeights takes, also in another process.
	SaveWeights(ctx context.Context, m *art.Model, name string, optimizer bool) (path string, err error)
	// LoadWeights replaces the training state of m: its weights, its optimizer, or a new optimizer when that is false, and
	// no gradients. What path may be besides one of SaveWeights is in [LoadWeights].
	LoadWeights(ctx context.Context, m *art.Model, path string, optimizer bool) error
	// Publish makes the training state of m its next step, k+1 after k, and stores it as [art.Backend.Train] does. groups
	// are what it was trained on and metrics what was measured, for row k of split "train"; both may be nil. A backend
	// that is no driver.Logger ignores them.
	Publish(
		ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, metrics map[string]float64,
	) (step int, err error)
	// Snapshot prepares s, a model that is not registered otherwise, to sample with weights as they are now: those of
	// path, as LoadWeights takes it, or the training state of m when path is "". Nothing is stored. s does not change any
	// more and cannot be trained; what else [art.Model.Snapshot] says of it is the backend's to keep.
	Snapshot(ctx context.Context, m *art.Model, path string, s *art.Model) error
	// Release forgets a model, and frees what it holds in memory. What is stored stays, and the run can be registered
	// again. Requests in progress end as they would have.
	Release(ctx context.Context, m *art.Model) error
}

// WeightsKeeper is a [Trainer] that lists what [SaveWeights] has stored.
type WeightsKeeper interface {
	// SavedWeights lists what is stored for m, the oldest first.
	SavedWeights(ctx context.Context, m *art.Model) ([]SavedWeights, error)
	// DeleteWeights deletes one of them. A name that is not stored is an [art.ErrInvalid].
	DeleteWeights(ctx context.Context, m *art.Model, name string) error
}

// SavedWeights describes what [SaveWeights] has stored.
type SavedWeights struct {
	Name, Path string
	Optimizer  bool  // it can be loaded with its optimizer
	Bytes      int64 // 0 when the backend does not know
}

// AdamW holds the options of one optimizer step. They may differ from step to step. Zeros mean zero: begin with
// [DefaultAdamW].
type AdamW struct {
	LearningRate float64
	Beta1, Beta2 float64 // decay of the moments per step, from 0 to below 1
	Eps          float64 // added to the root of the second moment, above 0
	WeightDecay  float64 // decoupled: a step subtracts LearningRate·WeightDecay of each weight
	GradClipNorm float64 // bound of the global norm of the gradient; 0 is off
}

// DefaultAdamW returns Tinker's defaults: learning rate 1e-4, betas 0.9 and 0.95, eps 1e-12, nothing else.
func DefaultAdamW() AdamW { return AdamW{LearningRate: 1e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-12} }

// OptimResult is the result of an optimizer step.
type OptimResult struct {
	// GradNorm is the global norm of the gradient, before clipping. Not finite when Skipped.
	GradNorm float64
	// Skipped says that the gradient or its loss was not finite: weights and moments are what they were, and the gradients
	// are dropped.
	Skipped bool
	// Updates is how many the training state has seen since its optimizer was new, this one included.
	Updates int
}

// LossConfig are the options of a loss of [ForwardBackward], by the keys of the Tinker API. Keys that are missing
// have their defaults, and others are an error. With p the logprob of a target under the weights, q its
// [Datum].Logprobs, r = exp(p - q), A its advantage and w its weight, the losses are sums over all targets of w times
//
//	cross_entropy        -p
//	importance_sampling  -r·A
//	ppo                  -min(r·A, clip(r, lo, hi)·A)
//	cispo                -stop_gradient(clip(r, lo, hi))·A·p
//	dro                  -(p·A - beta/2·(p - q)²)
//
// where lo is clip_low_threshold, by default 0.8 of ppo and 0 of cispo; hi is clip_high_threshold, by default 1.2 and
// 4; and beta is 0.05 by default.
//
// [credit.Loss] has the sources of the formulas, and advice. There is no mean: scale by weights, advantages or the
// learning rate. Other losses that the backend has (driver.LossProvider) can be named too, and have no options.
type LossConfig map[string]float64

// tokenLosses are the named losses of a [Trainer], with their options and defaults.
var tokenLosses = map[credit.Loss]struct {
	config LossConfig
	policy bool // it needs advantages and logprobs
}{
	credit.CrossEntropy:       {},
	credit.ImportanceSampling: {policy: true},
	credit.PPO:                {LossConfig{"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}, true},
	credit.CISPO:              {LossConfig{"clip_low_threshold": 0, "clip_high_threshold": 4}, true},
	credit.DRO:                {LossConfig{"beta": 0.05}, true},
}

// fill returns a copy of c with the defaults of a loss, and adds what is wrong with it to p. own are further losses.
func (c LossConfig) fill(p *problems.List, loss credit.Loss, own []credit.Loss) LossConfig {
	traits, known := tokenLosses[loss]
	if !known && !slices.Contains(own, loss) {
		named := []credit.Loss{credit.CrossEntropy, credit.ImportanceSampling, credit.PPO, credit.CISPO, credit.DRO}
		p.Addf("unknown loss %q, want one of %q", loss, append(named, own...))
		return nil
	}
	out := maps.Clone(traits.config)
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if _, ok := out[key]; !ok {
			p.Addf("loss %q has no option %q, want one of %q", loss, key, slices.Sorted(maps.Keys(out)))
			continue
		}
		out[key] = c[key]
		p.NotNegative(key, c[key])
	}
	lo, hi := out["clip_low_threshold"], out["clip_high_threshold"]
	p.Check(lo <= hi, "clip_low_threshold is %v, above clip_high_threshold, %v", lo, hi)
	return out
}
