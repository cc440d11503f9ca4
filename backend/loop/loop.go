// Package loop is for training loops of one's own: forward and backward passes, optimizer steps, and what is saved of
// them, over a model whose backend is a [Trainer], such as backend/local.
//
//	result, err := loop.ForwardBackward(ctx, model, data, credit.CrossEntropy, nil)
//	_, err = loop.OptimStep(ctx, model, loop.DefaultAdamW())
//	step, err := model.Publish(ctx, nil, nil)
//
// Names, losses and sums are those of the Tinker API.
package loop

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/problems"
)

func trainerOf(m *art.Model, op string) (Trainer, error) {
	if err := m.Trainable(op); err != nil {
		return nil, err
	}
	t, ok := m.Backend().(Trainer)
	if !ok {
		return nil, &art.Error{Op: op, Err: fmt.Errorf("%w: %T", art.ErrUnsupported, m.Backend()),
			Hint: "use a backend that implements loop.Trainer, such as backend/local"}
	}
	return t, nil
}

// Forward computes the loss of data and the logprobs of its targets under the training state, and changes nothing; see
// [Trainer] and [LossConfig]. config may be nil.
//
// It returns [art.ErrNotRegistered], [art.ErrFrozen], [art.ErrUnsupported] when the backend is no Trainer, and
// [art.ErrInvalid] listing what is wrong with the arguments.
func Forward(
	ctx context.Context, m *art.Model, data []Datum, loss credit.Loss, config LossConfig,
) (*ForwardResult, error) {
	t, config, err := prepare(m, "forward", data, loss, config)
	if err != nil {
		return nil, err
	}
	return t.Forward(ctx, m, data, loss, config)
}

// ForwardBackward is [Forward] that also adds the gradient of the loss to those that the next [OptimStep]
// uses. Gradients of several calls add up.
func ForwardBackward(
	ctx context.Context, m *art.Model, data []Datum, loss credit.Loss, config LossConfig,
) (*ForwardResult, error) {
	t, config, err := prepare(m, "forward backward", data, loss, config)
	if err != nil {
		return nil, err
	}
	return t.ForwardBackward(ctx, m, data, loss, config)
}

// prepare checks the arguments of a forward pass and fills in config.
func prepare(
	m *art.Model, op string, data []Datum, loss credit.Loss, config LossConfig,
) (Trainer, LossConfig, error) {
	t, err := trainerOf(m, op)
	if err != nil {
		return nil, nil, err
	}
	var own []credit.Loss
	if p, ok := t.(driver.LossProvider); ok {
		own = p.Losses()
	}
	var p problems.List
	if config = config.fill(&p, loss, own); len(p) == 0 {
		p.Check(len(data) > 0, "there are no data")
		traits, known := tokenLosses[loss]
		for i := range data {
			what := data[i].problem(loss, traits.policy || !known)
			p.Check(what == "", "datum %d %s", i, what)
		}
	}
	return t, config, p.Err(op, "correct the arguments")
}

// ForwardBackwardCustom adds the gradient of any function of logprobs. loss gets those of the targets of each datum, 0
// where there is [NoTarget], and returns its value and its derivative by each of them; it must not change them. Data
// have neither advantages nor logprobs, and their weights are not used. It costs two forward passes: the gradient is
// that of cross-entropy with the derivatives as weights, as in Tinker's forward_backward_custom.
//
// It returns what [ForwardBackward] does, with the value of loss, and the error of loss.
func ForwardBackwardCustom(
	ctx context.Context, m *art.Model, data []Datum,
	loss func(logprobs [][]float32) (value float64, derivative [][]float32, err error),
) (*ForwardResult, error) {
	const op = "forward backward custom"
	if loss == nil {
		return nil, problems.List{"loss is nil"}.Err(op, "pass a function")
	}
	linear := make([]Datum, len(data))
	for i, d := range data {
		linear[i] = Datum{Input: d.Input, Targets: d.Targets, K: d.K}
	}
	result, err := Forward(ctx, m, linear, credit.CrossEntropy, nil)
	if err != nil {
		return nil, err
	}
	value, derivative, err := loss(result.Logprobs)
	if err != nil {
		return nil, err
	}
	if len(derivative) != len(data) {
		return nil, problems.List{fmt.Sprintf("the derivative has %d lists for %d data", len(derivative), len(data))}.
			Err(op, "return one list for each datum, per target")
	}
	for i, list := range derivative {
		linear[i].Weights = make([]float32, len(list))
		for j, x := range list {
			linear[i].Weights[j] = -x
		}
	}
	if result, err = ForwardBackward(ctx, m, linear, credit.CrossEntropy, nil); err != nil {
		return nil, err
	}
	result.Loss, result.Metrics = value, nil
	return result, nil
}

// OptimStep updates the weights of the training state with the gradients that were added up, and drops these. A
// gradient or a loss that is not finite skips the update and is no error: see [OptimResult].
func OptimStep(ctx context.Context, m *art.Model, adamw AdamW) (*OptimResult, error) {
	const op = "optim step"
	t, err := trainerOf(m, op)
	if err != nil {
		return nil, err
	}
	var p problems.List
	p.NotNegative("learning rate", adamw.LearningRate)
	p.Check(adamw.Beta1 >= 0 && adamw.Beta1 < 1, "beta1 is %v, want 0 <= beta1 < 1", adamw.Beta1)
	p.Check(adamw.Beta2 >= 0 && adamw.Beta2 < 1, "beta2 is %v, want 0 <= beta2 < 1", adamw.Beta2)
	p.Check(adamw.Eps > 0 && !math.IsInf(adamw.Eps, 1), "eps is %v, want a finite number > 0", adamw.Eps)
	p.NotNegative("weight decay", adamw.WeightDecay)
	p.NotNegative("grad clip norm", adamw.GradClipNorm)
	if err := p.Err(op, "begin with loop.DefaultAdamW"); err != nil {
		return nil, err
	}
	return t.OptimStep(ctx, m, adamw)
}

// SaveWeights stores the training state of m under a name, to be loaded with [LoadWeights]: weights, and with
// optimizer also the moments, so that training continues as if it had not stopped. It returns the path of what is
// stored. Steps are not concerned: they are stored by [art.Model.Publish]. A name that is stored already is an
// [art.ErrInvalid]; names become those of files, as those of models do.
func SaveWeights(ctx context.Context, m *art.Model, name string, optimizer bool) (path string, err error) {
	const op = "save weights"
	t, err := trainerOf(m, op)
	if err != nil {
		return "", err
	}
	var p problems.List
	p.FileName("name", name)
	if err := p.Err(op, "choose another name"); err != nil {
		return "", err
	}
	return t.SaveWeights(ctx, m, name, optimizer)
}

// LoadWeights replaces the training state by a stored one, with its optimizer or a new one, and drops gradients. path
// is one that [SaveWeights] returned, of this model or of another one with the same base and the same shape of
// adapter. backend/local also takes
//
//	[[PROJECT/]NAME]@STEP           a step
//	[[PROJECT/]NAME]@best           the step with the highest val/reward
//	[[PROJECT/]NAME]@weights/SAVED  what SaveWeights stored
//
// where NAME defaults to this model. The step that answers requests stays as it is until [art.Model.Publish].
func LoadWeights(ctx context.Context, m *art.Model, path string, optimizer bool) error {
	const op = "load weights"
	t, err := trainerOf(m, op)
	if err != nil {
		return err
	}
	if strings.TrimSpace(path) == "" {
		return problems.List{"path is empty"}.Err(op, "pass what loop.SaveWeights returned")
	}
	return t.LoadWeights(ctx, m, path, optimizer)
}
