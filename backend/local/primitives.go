package local

import (
	"context"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/trainer"
)

// Forward computes a loss under the training state.
func (b *Backend) Forward(
	ctx context.Context, m *art.Model, data []loop.Datum, loss credit.Loss, config loop.LossConfig,
) (*loop.ForwardResult, error) {
	return b.pass(ctx, m, tokenCall{"forward", data, loss, config}, (*trainer.Session).Forward)
}

// ForwardBackward computes a loss, and adds its gradient to the training state.
func (b *Backend) ForwardBackward(
	ctx context.Context, m *art.Model, data []loop.Datum, loss credit.Loss, config loop.LossConfig,
) (*loop.ForwardResult, error) {
	return b.pass(ctx, m, tokenCall{"forward backward", data, loss, config}, (*trainer.Session).ForwardBackward)
}

// tokenCall is a call of a loss of [loop.Trainer].
type tokenCall struct {
	op     string
	data   []loop.Datum
	loss   credit.Loss
	config loop.LossConfig
}

// pass runs a pass over data.
func (b *Backend) pass(ctx context.Context, m *art.Model, call tokenCall,
	run func(*trainer.Session, context.Context, []grpo.Sequence, grpo.Loss) (*trainer.Pass, error),
) (*loop.ForwardResult, error) {
	e, err := b.lock(call.op, m)
	if err != nil {
		return nil, err
	}
	defer e.training.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	loss := b.tokenLoss(call.loss, call.config)
	if err := loss.Validate(); err != nil {
		return nil, invalid(call.op, "correct the loss's config", "%w", err)
	}
	batch, err := e.tokenBatch(call)
	if err != nil {
		return nil, err
	}
	out := &loop.ForwardResult{Logprobs: make([][]float32, len(call.data))}
	for i := range call.data {
		out.Logprobs[i] = make([]float32, len(call.data[i].Targets))
	}
	if len(batch) == 0 { // no datum has a target
		return out, nil
	}
	if err := b.fit(call.op, e, batch); err != nil {
		return nil, err
	}
	session, err := e.session(b)
	if err != nil {
		return nil, ownError(ctx, call.op, err)
	}
	pass, err := run(session, ctx, batch, loss)
	if err != nil {
		return nil, ownError(ctx, call.op, err)
	}
	out.Loss, out.Metrics = pass.Loss, pass.Metrics
	for i := range batch {
		d := &call.data[batch[i].Trajectory]
		spread(d, &batch[i], pass.Logprobs[i], out.Logprobs[batch[i].Trajectory])
	}
	for _, i := range pass.NotFinite {
		if at, n := batch[i].Trajectory, len(out.NotFinite); n == 0 || out.NotFinite[n-1] != at {
			out.NotFinite = append(out.NotFinite, at)
		}
	}
	return out, nil
}

// tokenBatch makes sequences of data that have targets: one for each of the K targets of positions. Their Trajectory is
// the index of the datum.
func (e *entry) tokenBatch(call tokenCall) (batch []grpo.Sequence, err error) {
	limit, vocab := e.base.config.MaxPositions, e.base.config.VocabSize
	for i := range call.data {
		d := &call.data[i]
		if what := badIDs(d, limit, vocab); what != "" {
			return nil, invalid(call.op, "correct the data", "datum %d %s", i, what)
		}
		for k := range max(1, d.K) {
			s := sequenceOf(d, k, call.loss)
			s.Trajectory = i
			if s.NumTrained() == 0 {
				continue
			}
			if err := s.Validate(); err != nil {
				return nil, invalid(call.op, "correct the data", "datum %d %v", i, err)
			}
			batch = append(batch, s)
		}
	}
	return batch, nil
}

// badIDs says why the model cannot read a datum, "" if it can.
func badIDs(d *loop.Datum, limit, vocab int) string {
	if n := len(d.Input); n > limit {
		return fmt.Sprintf("has %d tokens, the model knows %d positions", n, limit)
	}
	for _, x := range []struct {
		ids   []int32
		least int32
	}{{d.Input, 0}, {d.Targets, loop.NoTarget}} {
		for _, id := range x.ids {
			if id < x.least || int(id) >= vocab {
				return fmt.Sprintf("has id %d, the vocabulary has %d", id, vocab)
			}
		}
	}
	return ""
}

// sequenceOf makes a sequence of a datum with the k-th target of each position. Token i+1 is what position i predicts.
// Of a target that is not in the loss only the logprob is computed: it has weight 0.
func sequenceOf(d *loop.Datum, k int, loss credit.Loss) grpo.Sequence {
	n, each := len(d.Input)+1, max(1, d.K)
	s := grpo.Sequence{
		IDs: make([]int32, n), Trained: make([]bool, n), Logprobs: make([]float32, n), Targets: make([]int32, n), Weight: 1,
		Weights: make([]float64, n),
	}
	copy(s.IDs, d.Input)
	if d.Advantages != nil {
		s.Shaping = make([]float64, n)
	}
	for i := range d.Input {
		from := i*each + k
		s.Targets[i+1], s.Trained[i+1] = d.Targets[from], d.Targets[from] != loop.NoTarget
		if !d.InLoss(loss, from) {
			continue
		}
		s.Weights[i+1] = 1
		if d.Weights != nil {
			s.Weights[i+1] = float64(d.Weights[from])
		}
		if d.Advantages != nil {
			s.Shaping[i+1] = float64(d.Advantages[from])
		}
		if d.Logprobs != nil {
			s.Logprobs[i+1] = d.Logprobs[from]
		}
	}
	return s
}

// spread copies the logprobs of a sequence to the targets of its datum. Sequences of a datum come in the order of k,
// but for those without targets, so that k is found by the targets.
func spread(d *loop.Datum, s *grpo.Sequence, logprobs, to []float32) {
	each := max(1, d.K)
targets:
	for k := range each {
		for i := range d.Input {
			if d.Targets[i*each+k] != s.Targets[i+1] {
				continue targets
			}
		}
		for i := range d.Input {
			if s.Trained[i+1] {
				to[i*each+k] = logprobs[i+1]
			}
		}
	}
}

// tokenLoss returns a loss of [loop.LossConfig] with a complete configuration, or one of [Options].Losses.
func (b *Backend) tokenLoss(name credit.Loss, config loop.LossConfig) grpo.Loss {
	low, high := 1-config["clip_low_threshold"], config["clip_high_threshold"]-1
	switch name {
	case credit.CrossEntropy:
		return grpo.SupervisedLoss{}
	case credit.ImportanceSampling:
		return grpo.PolicyLoss{Loss: credit.ImportanceSampling}
	case credit.PPO:
		return grpo.PolicyLoss{Loss: credit.PPO, Epsilon: &low, EpsilonHigh: &high}
	case credit.CISPO:
		return grpo.PolicyLoss{Loss: credit.CISPO, Epsilon: &low, EpsilonHigh: &high}
	case credit.DRO:
		if config["beta"] == 0 {
			return grpo.PolicyLoss{Loss: credit.Reinforce}
		}
		return grpo.PolicyLoss{Loss: credit.DRO, DROBeta: config["beta"]}
	}
	return b.lossOf(&art.TrainConfig{Loss: name})
}

// OptimStep makes one update of the training state.
func (b *Backend) OptimStep(ctx context.Context, m *art.Model, adamw loop.AdamW) (*loop.OptimResult, error) {
	const op = "optim step"
	e, err := b.lock(op, m)
	if err != nil {
		return nil, err
	}
	defer e.training.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	session, err := e.session(b)
	if err != nil {
		return nil, ownError(ctx, op, err)
	}
	norm, ok, err := session.Update(grpo.AdamW{
		Beta1: adamw.Beta1, Beta2: adamw.Beta2, Eps: adamw.Eps, WeightDecay: adamw.WeightDecay,
		MaxGradNorm: adamw.GradClipNorm,
	}, adamw.LearningRate)
	if err != nil {
		e.own.changed = true // lost, if the device failed
		return nil, ownError(ctx, op, err)
	}
	e.own.changed = e.own.changed || ok
	return &loop.OptimResult{GradNorm: norm, Skipped: !ok, Updates: session.Updates()}, nil
}
