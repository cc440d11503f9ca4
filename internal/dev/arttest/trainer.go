package arttest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo/credit"
)

var (
	_ loop.Trainer       = (*Backend)(nil)
	_ loop.WeightsKeeper = (*Backend)(nil)
)

// Fake says that the weights of the backend do not change its replies.
func (b *Backend) Fake() {}

// training is the training state of a fake model, which has one weight: the logprob of every target is a number that
// depends on its id, plus the weight.
type training struct {
	weight, moment, gradient float64
	updates                  int
}

// saved is a stored training state.
type saved struct {
	name      string
	optimizer bool
	state     training
}

// Forward implements [loop.Trainer].
func (b *Backend) Forward(
	ctx context.Context, m *art.Model, data []loop.Datum, loss credit.Loss, config loop.LossConfig,
) (*loop.ForwardResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, "forward", m)
	if err != nil {
		return nil, err
	}
	out, _ := r.training.forward(data, loss, config)
	return out, nil
}

// ForwardBackward implements [loop.Trainer].
func (b *Backend) ForwardBackward(
	ctx context.Context, m *art.Model, data []loop.Datum, loss credit.Loss, config loop.LossConfig,
) (*loop.ForwardResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, "forward backward", m)
	if err != nil {
		return nil, err
	}
	out, gradient := r.training.forward(data, loss, config)
	r.training.gradient += gradient
	r.unpublished = true
	return out, nil
}

// forward computes a loss and its derivative by the weight.
func (s *training) forward(
	data []loop.Datum, loss credit.Loss, config loop.LossConfig,
) (out *loop.ForwardResult, gradient float64) {
	out = &loop.ForwardResult{}
	at := func(list []float32, i int, missing float64) float64 {
		if list == nil {
			return missing
		}
		return float64(list[i])
	}
	for _, d := range data {
		logprobs := make([]float32, len(d.Targets))
		for i, target := range d.Targets {
			if target == loop.NoTarget {
				continue
			}
			p := s.weight - 1 - float64(target%8)/8
			value, slope := tokenLoss(loss, config, p, at(d.Logprobs, i, 0), at(d.Advantages, i, 0))
			w := at(d.Weights, i, 1)
			logprobs[i], out.Loss, gradient = float32(p), out.Loss+w*value, gradient+w*slope
		}
		out.Logprobs = append(out.Logprobs, logprobs)
	}
	return out, gradient
}

// tokenLoss is the loss of a target by the formulas of [loop.LossConfig], and its derivative by p.
func tokenLoss(loss credit.Loss, config loop.LossConfig, p, q, a float64) (value, slope float64) {
	ratio := math.Exp(p - q)
	clipped := max(config["clip_low_threshold"], min(config["clip_high_threshold"], ratio))
	switch loss {
	case credit.ImportanceSampling:
		return -ratio * a, -ratio * a
	case credit.PPO:
		if clipped != ratio && clipped*a < ratio*a {
			return -clipped * a, 0
		}
		return -ratio * a, -ratio * a
	case credit.CISPO:
		return -clipped * a * p, -clipped * a
	case credit.DRO:
		return config["beta"]/2*(p-q)*(p-q) - p*a, config["beta"]*(p-q) - a
	default:
		return -p, -1
	}
}

// OptimStep implements [loop.Trainer], with plain momentum in place of AdamW.
func (b *Backend) OptimStep(ctx context.Context, m *art.Model, adamw loop.AdamW) (*loop.OptimResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, "optim step", m)
	if err != nil {
		return nil, err
	}
	s := &r.training
	out := &loop.OptimResult{GradNorm: math.Abs(s.gradient)}
	s.moment = adamw.Beta1*s.moment + s.gradient
	s.weight -= adamw.LearningRate * s.moment
	s.gradient, s.updates, r.unpublished = 0, s.updates+1, true
	out.Updates = s.updates
	return out, nil
}

// SaveWeights implements [loop.Trainer].
func (b *Backend) SaveWeights(ctx context.Context, m *art.Model, name string, optimizer bool) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, "save weights", m)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(r.saved, func(s saved) bool { return s.name == name }) {
		return "", invalid("save weights", "%q is stored already", name)
	}
	state := r.training
	state.gradient = 0
	r.saved = append(r.saved, saved{name, optimizer, state})
	return savedPath(m, name), nil
}

func savedPath(m *art.Model, name string) string { return runName(m) + "@weights/" + name }

func runName(m *art.Model) string { return m.Options().Project + "/" + m.Name() }

func invalid(op, format string, args ...any) error {
	return &art.Error{Op: op, Err: fmt.Errorf("%w: "+format, append([]any{art.ErrInvalid}, args...)...),
		Hint: "pass a stored name"}
}

// find returns a stored training state. b.mu is held.
func (b *Backend) find(op string, m *art.Model, path string) (*saved, error) {
	if strings.HasPrefix(path, "@") {
		path = runName(m) + path
	}
	for _, r := range slices.Concat(slices.Collect(maps.Values(b.runs)), b.released) {
		for i := range r.saved {
			if path == r.name+"@weights/"+r.saved[i].name {
				return &r.saved[i], nil
			}
		}
	}
	return nil, invalid(op, "%q is not stored", path)
}

// LoadWeights implements [loop.Trainer]. Steps cannot be loaded.
func (b *Backend) LoadWeights(ctx context.Context, m *art.Model, path string, optimizer bool) error {
	const op = "load weights"
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, op, m)
	if err != nil {
		return err
	}
	from, err := b.find(op, m, path)
	if err != nil {
		return err
	}
	if optimizer && !from.optimizer {
		return invalid(op, "%q has no optimizer", path)
	}
	r.training, r.unpublished = training{weight: from.state.weight}, true
	if optimizer {
		r.training = from.state
	}
	return nil
}

// Publish implements [loop.Trainer].
func (b *Backend) Publish(
	ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, metrics map[string]float64,
) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, "publish", m)
	if err != nil {
		return 0, err
	}
	r.log("train", r.step, groups, metrics)
	r.step++
	r.checkpoints, r.unpublished, r.published = append(r.checkpoints, r.step), false, r.training
	return r.step, nil
}

// Snapshot implements [loop.Trainer].
func (b *Backend) Snapshot(ctx context.Context, m *art.Model, path string, s *art.Model) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, "snapshot", m)
	if err != nil {
		return err
	}
	if path != "" {
		if _, err := b.find("snapshot", m, path); err != nil {
			return err
		}
	}
	b.runs[s] = &run{step: r.step, logged: map[logKey][]*art.TrajectoryGroup{}}
	return nil
}

// Release implements [loop.Trainer].
func (b *Backend) Release(ctx context.Context, m *art.Model) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, "release", m)
	if err != nil {
		return err
	}
	delete(b.runs, m)
	if r.name != "" {
		r.training, r.unpublished = r.published, false
		b.released = append(b.released, r)
	}
	return nil
}

// SavedWeights implements [loop.WeightsKeeper].
func (b *Backend) SavedWeights(ctx context.Context, m *art.Model) ([]loop.SavedWeights, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, "saved weights", m)
	if err != nil {
		return nil, err
	}
	var out []loop.SavedWeights
	for _, s := range r.saved {
		out = append(out, loop.SavedWeights{Name: s.name, Path: savedPath(m, s.name), Optimizer: s.optimizer})
	}
	return out, nil
}

// DeleteWeights implements [loop.WeightsKeeper].
func (b *Backend) DeleteWeights(ctx context.Context, m *art.Model, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, "delete weights", m)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(r.saved, func(s saved) bool { return s.name == name })
	if at < 0 {
		return invalid("delete weights", "%q is not stored", name)
	}
	r.saved = slices.Delete(r.saved, at, at+1)
	return nil
}
