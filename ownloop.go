package art

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// trainerHint names what a [Trainer] is.
const trainerHint = "art.Trainer, such as backend/local"

// trainer returns the backend of a model that can be trained as a [Trainer].
func (m *Model) trainer(op string) (Trainer, error) {
	t, err := capability[Trainer](m, op, trainerHint)
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
func (m *Model) Forward(ctx context.Context, data []Datum, loss Loss, config LossConfig) (*ForwardResult, error) {
	t, config, err := m.forward("forward", data, loss, config)
	if err != nil {
		return nil, err
	}
	return t.Forward(ctx, m, data, loss, config)
}

// ForwardBackward is [Model.Forward] that also adds the gradient of the loss to those that the next [Model.OptimStep]
// uses. Gradients of several calls add up.
func (m *Model) ForwardBackward(
	ctx context.Context, data []Datum, loss Loss, config LossConfig,
) (*ForwardResult, error) {
	t, config, err := m.forward("forward backward", data, loss, config)
	if err != nil {
		return nil, err
	}
	return t.ForwardBackward(ctx, m, data, loss, config)
}

// forward checks the arguments of a forward pass and fills in config.
func (m *Model) forward(op string, data []Datum, loss Loss, config LossConfig) (Trainer, LossConfig, error) {
	t, err := m.trainer(op)
	if err != nil {
		return nil, nil, err
	}
	var own []Loss
	if p, ok := t.(LossProvider); ok {
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
	result, err := m.Forward(ctx, linear, LossCrossEntropy, nil)
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
	if result, err = m.ForwardBackward(ctx, linear, LossCrossEntropy, nil); err != nil {
		return nil, err
	}
	result.Loss, result.Metrics = value, nil
	return result, nil
}

// OptimStep updates the weights of the training state with the gradients that were added up, and drops these. A
// gradient that is not finite skips the update and is no error: see [OptimResult].
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
	t, err := capability[Trainer](m, "release", trainerHint)
	if err != nil {
		return err
	}
	return t.Release(ctx, m)
}
