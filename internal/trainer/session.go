package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/goart-dev/art/grpo"
)

// ErrLost is wrapped by the errors of a session whose state was lost, in an update during which the device failed.
var ErrLost = errors.New("trainer: the state was lost when the device failed during an update")

// Session is a training state on the device, with the gradients that were added up since the last update. It is not
// safe for concurrent use. A call that returns an error has changed nothing, except that the state is lost when the
// device fails during an update.
type Session struct {
	trainer *Trainer
	shapes  *State       // names and shapes
	on      *deviceState // nil when lost
	grads   [][]float32  // nil when there are none
}

// Pass is the result of a forward pass.
type Pass struct {
	Loss     float64
	Logprobs [][]float32        // of each sequence, per token; 0 where it is not trained
	Metrics  map[string]float64 // of the loss
	Computed int                // tokens, padding included
	// NotFinite lists the sequences whose loss or gradient is NaN or infinite.
	NotFinite []int
	totals    *grpo.Totals
}

// Start copies a state to the device. The state is left as it is. Free releases the memory.
func (t *Trainer) Start(state *State) (*Session, error) {
	on, err := t.toDevice(state)
	if err != nil {
		return nil, err
	}
	return &Session{trainer: t, shapes: state, on: on}, nil
}

// Free releases the memory of the device.
func (s *Session) Free() {
	if s.on != nil {
		s.on.free()
	}
	s.on, s.grads = nil, nil
}

// State copies the state to the host, without gradients.
func (s *Session) State() (*State, error) {
	if s.on == nil {
		return nil, ErrLost
	}
	return s.on.state(s.shapes)
}

// Pending reports whether there are gradients.
func (s *Session) Pending() bool { return s.grads != nil }

// Forward computes a loss over a batch, whose weights are used as they are: the loss is a plain sum.
func (s *Session) Forward(ctx context.Context, batch []grpo.Sequence, loss grpo.Loss) (*Pass, error) {
	if err := s.check(batch, loss); err != nil {
		return nil, err
	}
	return s.pass(ctx, batch, lossCall{loss: loss, denominator: 1}, nil)
}

// ForwardBackward is Forward that adds the gradient of the loss to those of the session.
func (s *Session) ForwardBackward(ctx context.Context, batch []grpo.Sequence, loss grpo.Loss) (*Pass, error) {
	if err := s.check(batch, loss); err != nil {
		return nil, err
	}
	return s.accumulate(ctx, batch, lossCall{loss: loss, denominator: 1})
}

func (s *Session) check(batch []grpo.Sequence, loss grpo.Loss) error {
	if s.on == nil {
		return ErrLost
	}
	return errors.Join(loss.Validate(), s.trainer.checkBatch(batch, loss))
}

// accumulate adds the gradient of a loss to those of the session.
func (s *Session) accumulate(ctx context.Context, batch []grpo.Sequence, call lossCall) (*Pass, error) {
	fresh := make([][]float32, len(s.on.params))
	p, err := s.pass(ctx, batch, call, fresh)
	if err != nil {
		return nil, err
	}
	if !finiteNorm(fresh) || !finite(p.Loss) {
		if p.NotFinite, err = s.culprits(ctx, batch, call); err != nil {
			return nil, err
		}
	}
	if s.grads == nil {
		s.grads = fresh
		return p, nil
	}
	for i, g := range fresh {
		for j, v := range g {
			s.grads[i][j] += v
		}
	}
	return p, nil
}

// pass computes a loss, and adds its gradient to grads unless they are nil.
func (s *Session) pass(ctx context.Context, batch []grpo.Sequence, call lossCall, grads [][]float32) (*Pass, error) {
	p, err := s.trainer.gradient(ctx, s.on.params, batch, call, grads)
	if err != nil {
		return nil, err
	}
	return &Pass{Loss: p.value, Logprobs: p.logprobs, Metrics: p.totals.Metrics(), Computed: p.computed, totals: p.totals},
		nil
}

// culprits returns the sequences that alone have a loss or gradient that is not finite.
func (s *Session) culprits(ctx context.Context, batch []grpo.Sequence, call lossCall) (list []int, err error) {
	for i := range batch {
		grads := make([][]float32, len(s.on.params))
		p, err := s.pass(ctx, batch[i:i+1], call, grads)
		if err != nil {
			return nil, err
		}
		if !finiteNorm(grads) || !finite(p.Loss) {
			list = append(list, i)
		}
	}
	return list, nil
}

// Update makes one update with the gradients that were added up, and drops them. It returns the norm of the gradient,
// and false when that is not finite: the state is then unchanged.
func (s *Session) Update(cfg grpo.AdamW, rate float64) (norm float64, ok bool, err error) {
	if s.on == nil {
		return 0, false, ErrLost
	}
	if err := cfg.Validate(); err != nil {
		return 0, false, err
	}
	grads := s.grads
	if grads == nil {
		for _, p := range s.shapes.Params {
			grads = append(grads, make([]float32, len(p)))
		}
	}
	norm, ok, err = s.trainer.apply(s.shapes, s.on, grads, cfg, rate)
	if err != nil {
		s.Free()
		return 0, false, fmt.Errorf("%w: %w", ErrLost, err)
	}
	s.grads = nil
	collectGarbage()
	return norm, ok, nil
}

// Updates is the number of updates that the optimizer has seen.
func (s *Session) Updates() int {
	if s.on == nil {
		return 0
	}
	return s.on.updates
}

// finiteNorm reports whether the norm of a gradient is finite as an update computes it, in float32.
func finiteNorm(lists [][]float32) bool {
	sum := 0.0
	for _, list := range lists {
		for _, x := range list {
			sum += float64(x) * float64(x)
		}
	}
	return sum <= math.MaxFloat32
}
