package art

import (
	"context"
	"fmt"
	"github.com/goart-dev/art/grpo/credit"
	"maps"
	"slices"
	"strings"
	"time"
)

// Trainer is a [Backend] with the primitives of training, for a loop of one's own: [Model.ForwardBackward],
// [Model.OptimStep], [Model.SaveWeights], [Model.LoadWeights], [Model.Publish] and [Model.Snapshot]. Names, losses and
// sums are those of the Tinker API, so that the same loop runs on such a service, and a server of it on any Trainer.
//
// Beside the step that answers requests, a registered model has a training state: weights, the moments of the
// optimizer, and gradients that have been added up. It begins as the newest step, without gradients. ForwardBackward
// and OptimStep change it and nothing else; Publish makes it the next step. What is not published or saved ends with
// the process. Several models on one base have training states of their own.
//
// The backend's other ways to make a step ([Model.Train], [Model.TrainSFT], [Model.TrainDPO], [Model.Restore]) begin at
// the newest step. They are an [ErrInvalid] while the training state has updates or gradients that are not published:
// publish it, or load the newest step again.
//
// Calls for one model are executed one at a time, and each takes effect completely or, when it returns an error, not at
// all. Concurrent calls are in no particular order: who needs one waits for each call before the next.
type Trainer interface {
	// Forward computes what ForwardBackward returns, and changes nothing. Arguments are valid for [Model.Forward], and
	// config has every key of the loss. An id that the vocabulary lacks and a datum that is too long for the model or its
	// memory are an [ErrInvalid] before anything is computed.
	Forward(ctx context.Context, m *Model, data []Datum, loss credit.Loss, config LossConfig) (*ForwardResult, error)
	// ForwardBackward computes the loss of data and adds its gradient to those of the training state.
	ForwardBackward(
		ctx context.Context, m *Model, data []Datum, loss credit.Loss, config LossConfig,
	) (*ForwardResult, error)
	// OptimStep makes one update of the weights with the gradients that were added up, none of which is a gradient of 0,
	// and drops them.
	OptimStep(ctx context.Context, m *Model, adamw AdamW) (*OptimResult, error)
	// SaveWeights stores the training state of m, without its gradients, under a name that m has not used for another one.
	// Without optimizer only the weights are stored. path is what LoadWeights takes, also in another process.
	SaveWeights(ctx context.Context, m *Model, name string, optimizer bool) (path string, err error)
	// LoadWeights replaces the training state of m: its weights, its optimizer, or a new optimizer when that is false, and
	// no gradients. What path may be besides one of SaveWeights is in [Model.LoadWeights].
	LoadWeights(ctx context.Context, m *Model, path string, optimizer bool) error
	// Publish makes the training state of m its next step, k+1 after k, and stores it as [Backend.Train] does. groups are
	// what it was trained on and metrics what was measured, for row k of split "train"; both may be nil. A backend that is
	// no [Logger] ignores them.
	Publish(ctx context.Context, m *Model, groups []*TrajectoryGroup, metrics map[string]float64) (step int, err error)
	// Snapshot prepares s, a model that is not registered otherwise, to sample with weights as they are now: those of
	// path, as LoadWeights takes it, or the training state of m when path is "". Nothing is stored. s does not change any
	// more and cannot be trained; what else [Model.Snapshot] says of it is the backend's to keep.
	Snapshot(ctx context.Context, m *Model, path string, s *Model) error
	// Release forgets a model, and frees what it holds in memory. What is stored stays, and the run can be registered
	// again. Requests in progress end as they would have.
	Release(ctx context.Context, m *Model) error
}

// WeightsKeeper is a [Trainer] that lists what [Model.SaveWeights] has stored.
type WeightsKeeper interface {
	// SavedWeights lists what is stored for m, the oldest first.
	SavedWeights(ctx context.Context, m *Model) ([]SavedWeights, error)
	// DeleteWeights deletes one of them. A name that is not stored is an [ErrInvalid].
	DeleteWeights(ctx context.Context, m *Model, name string) error
}

// Datum is one sequence of tokens to train on: N ids that the model reads, and what it is to predict after each. Lists
// are per position; index i of all of them belongs to the token after Input[i]. For plain text, Targets are Input moved
// by one.
type Datum struct {
	// Input are the ids that the model reads, at least one.
	Input []int32
	// Targets are the ids whose logprobs count: that of Targets[i] after Input[:i+1]. NoTarget is none: the position is
	// not in the loss. Positions without a target, such as those of a prompt, cost less. With K they are [N, K], row by
	// row.
	Targets []int32
	// K is the number of targets of each position, for soft targets such as those of distillation; 0 is 1. More are for
	// [credit.CrossEntropy] only.
	K int
	// Weights multiply the loss of each target. nil is 1 for all. They may be negative.
	Weights []float32
	// Logprobs are those of Targets under the policy that sampled them, as in [Sample]. For losses with a ratio to it.
	Logprobs []float32
	// Advantages of Targets, for policy losses.
	Advantages []float32
}

// NoTarget is the target of a position that is not in the loss.
const NoTarget int32 = -1

// InLoss reports whether the i-th of Targets is in a loss, which metrics are of too: it is not NoTarget, its weight is
// not 0, and neither is its advantage where the loss is a multiple of that, as all of [TokenLosses] but
// [credit.CrossEntropy] and [credit.DRO] are. So the positions of a prompt are out whichever way they are marked.
func (d *Datum) InLoss(loss credit.Loss, i int) bool {
	if d.Targets[i] == NoTarget || d.Weights != nil && d.Weights[i] == 0 {
		return false
	}
	multiple := loss == credit.ImportanceSampling || loss == credit.PPO || loss == credit.CISPO
	return !multiple || d.Advantages[i] != 0
}

// ForwardResult is the result of a forward pass.
type ForwardResult struct {
	// Loss is the sum over all targets.
	Loss float64
	// Logprobs are those of the targets of each datum, under the weights of the training state; 0 for NoTarget.
	Logprobs [][]float32
	// Metrics are further ones that the backend measures, by the names in its documentation, of the targets for which
	// [Datum.InLoss] holds. May be nil.
	Metrics map[string]float64
	// NotFinite lists the data whose loss or gradient is NaN or infinite: all data, when those of each alone are finite
	// and only the sum overflows. The next OptimStep is then skipped.
	NotFinite []int
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

// SavedWeights describes what [Model.SaveWeights] has stored.
type SavedWeights struct {
	Name, Path string
	Optimizer  bool  // it can be loaded with its optimizer
	Bytes      int64 // 0 when the backend does not know
}

// LossConfig are the options of a loss of [Model.ForwardBackward], by the keys of the Tinker API. Keys that are missing
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
// learning rate. Other losses that the backend has ([LossProvider]) can be named too, and have no options.
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

// TokenLosses lists the losses that every [Trainer] has.
func TokenLosses() []credit.Loss {
	return []credit.Loss{credit.CrossEntropy, credit.ImportanceSampling, credit.PPO, credit.CISPO, credit.DRO}
}

// fill returns a copy of c with the defaults of a loss, and adds what is wrong with it to p. own are further losses.
func (c LossConfig) fill(p *problems, loss credit.Loss, own []credit.Loss) LossConfig {
	traits, known := tokenLosses[loss]
	if !known && !slices.Contains(own, loss) {
		p.addf("unknown loss %q, want one of %q", loss, append(TokenLosses(), own...))
		return nil
	}
	out := maps.Clone(traits.config)
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if _, ok := out[key]; !ok {
			p.addf("loss %q has no option %q, want one of %q", loss, key, slices.Sorted(maps.Keys(out)))
			continue
		}
		out[key] = c[key]
		p.check(finite(c[key]) && c[key] >= 0, "%s is %v, want a finite number >= 0", key, c[key])
	}
	lo, hi := out["clip_low_threshold"], out["clip_high_threshold"]
	p.check(lo <= hi, "clip_low_threshold is %v, above clip_high_threshold, %v", lo, hi)
	return out
}

// checkData adds what is wrong with data for a loss that the backend has.
func checkData(p *problems, data []Datum, loss credit.Loss) {
	p.check(len(data) > 0, "there are no data")
	traits, known := tokenLosses[loss]
	for i := range data {
		if what := data[i].problem(loss, traits.policy || !known); what != "" {
			p.addf("datum %d %s", i, what)
		}
	}
}

// problem says what is wrong with a datum, "" if nothing is.
func (d *Datum) problem(loss credit.Loss, policy bool) string {
	n, k := len(d.Input), max(d.K, 1)
	switch {
	case n == 0:
		return "has no input"
	case d.K < 0, k > 1 && loss != credit.CrossEntropy:
		return fmt.Sprintf("has K %d; more than 1 is for loss %q only", d.K, credit.CrossEntropy)
	case len(d.Targets)%n != 0 || len(d.Targets)/n != k: // n*k may overflow
		return fmt.Sprintf("has %d ids and %d targets, want %d for each id", n, len(d.Targets), k)
	case !policy && (d.Advantages != nil || d.Logprobs != nil):
		return fmt.Sprintf("has advantages or logprobs, which loss %q does not use", loss)
	}
	for _, list := range []struct {
		what   string
		values []float32
		needed bool
	}{{"weights", d.Weights, false}, {"logprobs", d.Logprobs, policy}, {"advantages", d.Advantages, policy}} {
		if got := len(list.values); got != n*k && (list.needed || list.values != nil) {
			return fmt.Sprintf("has %d %s, want %d", got, list.what, n*k)
		}
		if at := slices.IndexFunc(list.values, func(x float32) bool { return !finite(float64(x)) }); at >= 0 {
			return fmt.Sprintf("has %s with %v at %d", list.what, list.values[at], at)
		}
	}
	if at := slices.IndexFunc(d.Targets, func(id int32) bool { return id < NoTarget }); at >= 0 {
		return fmt.Sprintf("has target %d at %d", d.Targets[at], at)
	}
	return ""
}

// trainer returns the backend of a model that can be trained as a [Trainer].
func (m *Model) trainer(op string) (Trainer, error) {
	t, err := capability[Trainer](m, op, "loop.Trainer")
	if err == nil {
		err = m.trainable(op)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Forward computes the loss of data and the logprobs of its targets under the training state, and changes nothing; see
// [Trainer] and [LossConfig]. config may be nil.
//
// It returns [ErrNotRegistered], [ErrFrozen], [ErrUnsupported] when the backend is no Trainer, and [ErrInvalid] listing
// what is wrong with the arguments.
func (m *Model) Forward(
	ctx context.Context, data []Datum, loss credit.Loss, config LossConfig,
) (*ForwardResult, error) {
	t, config, err := m.forward("forward", data, loss, config)
	if err != nil {
		return nil, err
	}
	return t.Forward(ctx, m, data, loss, config)
}

// ForwardBackward is [Model.Forward] that also adds the gradient of the loss to those that the next [Model.OptimStep]
// uses. Gradients of several calls add up.
func (m *Model) ForwardBackward(
	ctx context.Context, data []Datum, loss credit.Loss, config LossConfig,
) (*ForwardResult, error) {
	t, config, err := m.forward("forward backward", data, loss, config)
	if err != nil {
		return nil, err
	}
	return t.ForwardBackward(ctx, m, data, loss, config)
}

// forward checks the arguments of a forward pass and fills in config.
func (m *Model) forward(op string, data []Datum, loss credit.Loss, config LossConfig) (Trainer, LossConfig, error) {
	t, err := m.trainer(op)
	if err != nil {
		return nil, nil, err
	}
	var own []credit.Loss
	if p, ok := t.(lossProvider); ok {
		own = p.Losses()
	}
	var p problems
	if config = config.fill(&p, loss, own); len(p) == 0 {
		checkData(&p, data, loss)
	}
	return t, config, p.err(op, "correct the arguments")
}

// ForwardBackwardCustom adds the gradient of any function of logprobs. loss gets those of the targets of each datum, 0
// where there is [NoTarget], and returns its value and its derivative by each of them; it must not change them. Data
// have neither advantages nor logprobs, and their weights are not used. It costs two forward passes: the gradient is
// that of cross-entropy with the derivatives as weights, as in Tinker's forward_backward_custom.
//
// It returns what [Model.ForwardBackward] does, with the value of loss, and the error of loss.
func (m *Model) ForwardBackwardCustom(
	ctx context.Context, data []Datum,
	loss func(logprobs [][]float32) (value float64, derivative [][]float32, err error),
) (*ForwardResult, error) {
	const op = "forward backward custom"
	if loss == nil {
		return nil, problems{"loss is nil"}.err(op, "pass a function")
	}
	linear := make([]Datum, len(data))
	for i, d := range data {
		linear[i] = Datum{Input: d.Input, Targets: d.Targets, K: d.K}
	}
	result, err := m.Forward(ctx, linear, credit.CrossEntropy, nil)
	if err != nil {
		return nil, err
	}
	value, derivative, err := loss(result.Logprobs)
	if err != nil {
		return nil, err
	}
	if len(derivative) != len(data) {
		return nil, problems{fmt.Sprintf("the derivative has %d lists for %d data", len(derivative), len(data))}.
			err(op, "return one list for each datum, per target")
	}
	for i, list := range derivative {
		linear[i].Weights = make([]float32, len(list))
		for j, x := range list {
			linear[i].Weights[j] = -x
		}
	}
	if result, err = m.ForwardBackward(ctx, linear, credit.CrossEntropy, nil); err != nil {
		return nil, err
	}
	result.Loss, result.Metrics = value, nil
	return result, nil
}

// OptimStep updates the weights of the training state with the gradients that were added up, and drops these. A
// gradient or a loss that is not finite skips the update and is no error: see [OptimResult].
func (m *Model) OptimStep(ctx context.Context, adamw AdamW) (*OptimResult, error) {
	const op = "optim step"
	t, err := m.trainer(op)
	if err != nil {
		return nil, err
	}
	var p problems
	p.notNegative("learning rate", &adamw.LearningRate)
	p.check(adamw.Beta1 >= 0 && adamw.Beta1 < 1, "beta1 is %v, want 0 <= beta1 < 1", adamw.Beta1)
	p.check(adamw.Beta2 >= 0 && adamw.Beta2 < 1, "beta2 is %v, want 0 <= beta2 < 1", adamw.Beta2)
	p.check(finite(adamw.Eps) && adamw.Eps > 0, "eps is %v, want a finite number > 0", adamw.Eps)
	p.notNegative("weight decay", &adamw.WeightDecay)
	p.notNegative("grad clip norm", &adamw.GradClipNorm)
	if err := p.err(op, "begin with art.DefaultAdamW"); err != nil {
		return nil, err
	}
	return t.OptimStep(ctx, m, adamw)
}

// SaveWeights stores the training state under a name, to be loaded with [Model.LoadWeights]: weights, and with
// optimizer also the moments, so that training continues as if it had not stopped. It returns the path of what is
// stored. Steps are not concerned: they are stored by [Model.Publish]. A name that is stored already is an
// [ErrInvalid]; names become those of files, as those of models do.
func (m *Model) SaveWeights(ctx context.Context, name string, optimizer bool) (path string, err error) {
	const op = "save weights"
	t, err := m.trainer(op)
	if err != nil {
		return "", err
	}
	var p problems
	p.folderName("name", name)
	if err := p.err(op, "choose another name"); err != nil {
		return "", err
	}
	return t.SaveWeights(ctx, m, name, optimizer)
}

// LoadWeights replaces the training state by a stored one, with its optimizer or a new one, and drops gradients. path
// is one that [Model.SaveWeights] returned, of this model or another one with the same base and the same shape of
// adapter. backend/local also takes
//
//	[[PROJECT/]NAME]@STEP           a step
//	[[PROJECT/]NAME]@best           the step with the highest val/reward
//	[[PROJECT/]NAME]@weights/SAVED  what SaveWeights stored
//
// where NAME defaults to this model. The step that answers requests stays as it is until [Model.Publish].
func (m *Model) LoadWeights(ctx context.Context, path string, optimizer bool) error {
	const op = "load weights"
	t, err := m.trainer(op)
	if err != nil {
		return err
	}
	if strings.TrimSpace(path) == "" {
		return problems{"path is empty"}.err(op, "pass what Model.SaveWeights returned")
	}
	return t.LoadWeights(ctx, m, path, optimizer)
}

// Publish makes the training state the next step: requests that start after it returns are answered by it, and it is
// stored as a step of [Model.Train] is. groups are what was trained on and metrics what was measured, stored under
// split "train" and the step before; both may be nil. It returns the new step.
func (m *Model) Publish(
	ctx context.Context, groups []*TrajectoryGroup, metrics map[string]float64,
) (step int, err error) {
	t, err := m.trainer("publish")
	if err != nil {
		return 0, err
	}
	l := &learning{m, time.Now(), m.Step() + 1, groups}
	step, err = t.Publish(ctx, m, groups, metrics)
	if _, err := l.end(&TrainResult{Step: step, Metrics: metrics}, err); err != nil {
		return 0, err
	}
	return step, nil
}

// Snapshot returns a model that samples with weights as they are now: those of path, see [Model.LoadWeights], or those
// of the training state when path is "". Later training does not change it. It has the name, options and step of m,
// answers like a registered model, with a [Sample] in each reply, and has no run of its own: it can be neither trained
// nor logged. [Model.Release] frees its memory.
func (m *Model) Snapshot(ctx context.Context, path string) (*Model, error) {
	t, err := m.trainer("snapshot")
	if err != nil {
		return nil, err
	}
	s := NewModel(m.name, &m.opts)
	s.snapshot = true
	if err := t.Snapshot(ctx, m, path, s); err != nil {
		return nil, err
	}
	s.backend = t.(Backend)
	s.reached(m.Step())
	return s, nil
}

// Release makes the backend forget the model and free its memory. What is stored stays; another [Model] of the same
// name can be registered afterwards. The model is of no use any more.
func (m *Model) Release(ctx context.Context) error {
	t, err := capability[Trainer](m, "release", "loop.Trainer")
	if err != nil {
		return err
	}
	return t.Release(ctx, m)
}
