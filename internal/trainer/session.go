package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/machine"
)

// ErrLost is wrapped by the errors of a session whose state was lost, when the device failed while it changed.
var ErrLost = errors.New("trainer: the training state was lost when the device failed")

// Session is a training state on the device, with the gradients that were added up since the last update. It is not
// safe for concurrent use. A call that returns an error has changed nothing, except that the state is lost when the
// device fails during an update, or while gradients are added to those that there are.
type Session struct {
	trainer *Trainer
	shapes  *State       // names and shapes
	on      *deviceState // nil when lost
	grads   gradients    // nil when there are none
	invalid bool         // one of the gradients that were added, or its loss, is not finite
}

// Pass is the result of a forward pass.
type Pass struct {
	Loss     float64
	Logprobs [][]float32        // of each sequence, per token; 0 where it is not trained
	Metrics  map[string]float64 // of the loss
	Computed int                // tokens, padding included
	// Recomputed are those whose layers were computed again for the gradient.
	Recomputed int
	// NotFinite lists the sequences whose loss or gradient is NaN or infinite.
	NotFinite []int
	// Overflowed reports that NotFinite is all sequences, because only the sum of what each has alone is not finite.
	Overflowed bool
	totals     *totals
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
	s.grads.free()
	s.on, s.grads, s.invalid = nil, nil, false
}

// State copies the state to the host, without gradients.
func (s *Session) State() (*State, error) {
	if s.on == nil {
		return nil, ErrLost
	}
	out := &State{Names: slices.Clone(s.shapes.Names), Shapes: slices.Clone(s.shapes.Shapes), Updates: s.on.updates}
	for _, x := range []struct {
		to   *[][]float32
		from []*tensors.Tensor
	}{{&out.Params, s.on.params}, {&out.M, s.on.m}, {&out.V, s.on.v}} {
		for i, y := range x.from {
			values, err := tensors.CopyFlatData[float32](y)
			if err != nil {
				return nil, fmt.Errorf("trainer: %s: %w", out.Names[i], err)
			}
			*x.to = append(*x.to, values)
		}
	}
	return out, nil
}

// Pending reports whether there are gradients.
func (s *Session) Pending() bool { return s.grads != nil }

// Forward computes a loss over a batch, whose weights are used as they are: the loss is a plain sum.
func (s *Session) Forward(ctx context.Context, batch []grpo.Sequence, loss grpo.Loss) (*Pass, error) {
	if err := s.check(batch, loss); err != nil {
		return nil, err
	}
	p, _, err := s.trainer.evaluate(ctx, s.on.params, batch, lossCall{loss: loss, denominator: 1}, false)
	return p, err
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
	result, grads, ok, err := s.backward(ctx, batch, call)
	if err != nil {
		return nil, err
	}
	if !ok {
		if result.NotFinite, err = s.culprits(ctx, batch, call); err != nil {
			grads.free()
			return nil, err
		}
		if result.Overflowed = len(result.NotFinite) == 0; result.Overflowed {
			result.NotFinite = indices(len(batch))
		}
	}
	s.invalid = s.invalid || !ok
	if s.grads, err = s.trainer.sum(s.grads, grads); err != nil {
		s.Free()
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	return result, nil
}

// backward computes a loss and its gradient, and whether both are finite. The caller frees the gradient.
func (s *Session) backward(
	ctx context.Context, batch []grpo.Sequence, call lossCall,
) (p *Pass, grads gradients, ok bool, err error) {
	if p, grads, err = s.trainer.evaluate(ctx, s.on.params, batch, call, true); err != nil {
		return nil, nil, false, err
	}
	if ok, err = s.trainer.finite(grads); err != nil {
		grads.free()
		return nil, nil, false, err
	}
	return p, grads, ok && finite(p.Loss), nil
}

// culprits returns the sequences that alone have a loss or gradient that is not finite.
func (s *Session) culprits(ctx context.Context, batch []grpo.Sequence, call lossCall) (list []int, err error) {
	for i := range batch {
		_, grads, ok, err := s.backward(ctx, batch[i:i+1], call)
		if err != nil {
			return nil, err
		}
		grads.free()
		if !ok {
			list = append(list, i)
		}
	}
	return list, nil
}

// Update makes one update with the gradients that were added up, and drops them. It returns the norm of the gradient,
// and false when that is not finite, or a loss was not: the state is then unchanged, and the norm NaN or infinite.
func (s *Session) Update(cfg grpo.AdamW, rate float64) (norm float64, ok bool, err error) {
	if s.on == nil {
		return 0, false, ErrLost
	}
	if err := cfg.Validate(); err != nil {
		return 0, false, err
	}
	if s.invalid { // a loss can be infinite though its gradient is not
		s.drop()
		return math.NaN(), false, nil
	}
	if s.grads == nil {
		var zeros [][]float32
		for _, p := range s.shapes.Params {
			zeros = append(zeros, make([]float32, len(p)))
		}
		if s.grads, err = s.trainer.upload(s.shapes, zeros); err != nil {
			return 0, false, err
		}
	}
	if norm, ok, err = s.trainer.apply(s.on, s.grads, cfg, rate); err != nil {
		s.Free()
		return 0, false, fmt.Errorf("%w: %w", ErrLost, err)
	}
	s.drop()
	return norm, ok, nil
}

// drop frees the gradients.
func (s *Session) drop() {
	s.grads.free()
	s.grads, s.invalid = nil, false
	machine.ReturnMemory()
}

// Updates is the number of updates that the optimizer has seen.
func (s *Session) Updates() int {
	if s.on == nil {
		return 0
	}
	return s.on.updates
}

// State is everything that an update changes. All lists are in the order of Names.
type State struct {
	Names   []string
	Shapes  [][]int // of the graph
	Params  [][]float32
	M, V    [][]float32 // AdamW's moments
	Updates int         // made so far
}

func (s *State) add(name string, shape []int, data []float32) {
	s.Names = append(s.Names, name)
	s.Shapes = append(s.Shapes, slices.Clone(shape))
	s.Params = append(s.Params, data)
	s.M = append(s.M, make([]float32, len(data)))
	s.V = append(s.V, make([]float32, len(data)))
}

// CheckFinite reports the first tensor with a number that is NaN or infinite.
func (s *State) CheckFinite() error {
	for _, x := range []struct {
		what string
		list [][]float32
	}{{"parameters", s.Params}, {"first moments", s.M}, {"second moments", s.V}} {
		for i, values := range x.list {
			if j := slices.IndexFunc(values, func(v float32) bool { return !finite(float64(v)) }); j >= 0 {
				return fmt.Errorf("%w: the %s of %s have %v", ErrDiverged, x.what, s.Names[i], values[j])
			}
		}
	}
	return nil
}

// deviceState is a state on the device, where it stays for a run. All lists are in the order of the state's names.
type deviceState struct {
	params, m, v []*tensors.Tensor
	updates      int
}

// toDevice copies a state to the device.
func (t *Trainer) toDevice(s *State) (*deviceState, error) {
	r := &deviceState{updates: s.Updates}
	for _, x := range []struct {
		to   *[]*tensors.Tensor
		from [][]float32
	}{{&r.params, s.Params}, {&r.m, s.M}, {&r.v, s.V}} {
		var err error
		if *x.to, err = t.upload(s, x.from); err != nil {
			r.free()
			return nil, err
		}
	}
	return r, nil
}

// upload copies values with the shapes of a state to the device.
func (t *Trainer) upload(s *State, values [][]float32) ([]*tensors.Tensor, error) {
	var list []*tensors.Tensor
	for i, v := range values {
		x, err := graphx.Upload(t.opts.Device, v, s.Shapes[i]...)
		if err != nil {
			finalize(list)
			return nil, fmt.Errorf("trainer: %s: %w", s.Names[i], err)
		}
		list = append(list, x)
	}
	return list, nil
}

// all lists the tensors in the order in which the graph of an update takes and returns them.
func (r *deviceState) all() []*tensors.Tensor { return slices.Concat(r.params, r.m, r.v) }

func (r *deviceState) free() { finalize(r.all()) }

// apply makes one update of r, whose tensors it donates to the graph, so that they are written in place. It returns the
// gradient's norm, and false when that is not finite: the values are then unchanged. After an error r has no tensors.
func (t *Trainer) apply(
	r *deviceState, grads gradients, cfg grpo.AdamW, rate float64,
) (norm float64, ok bool, err error) {
	n := len(r.params)
	all := r.all()
	r.params, r.m, r.v = nil, nil, nil
	in, err := graphx.Donate(t.opts.Device, all)
	if err != nil {
		return 0, false, fmt.Errorf("trainer: update: %w", err)
	}
	scalars := tensors.FromFlatDataAndDimensions(cfg.Scalars(r.updates+1, rate), grpo.NumScalars)
	defer finalize([]*tensors.Tensor{scalars})
	build := func(in []*Node) []*Node {
		state := grpo.AdamWState{Params: in[:n], M: in[n : 2*n], V: in[2*n : 3*n]}
		next, norm := cfg.Step(state, in[3*n:4*n], in[4*n])
		return append(next.Nodes(), norm)
	}
	out, err := t.updates.Call(cfg, build, append(appendInputs(in, grads), scalars))
	if err != nil {
		return 0, false, fmt.Errorf("trainer: update: %w", err)
	}
	r.params, r.m, r.v = out[:n], out[n:2*n], out[2*n:3*n]
	defer finalize(out[3*n:])
	read, err := tensors.CopyFlatData[float32](out[3*n])
	if err != nil {
		return 0, false, fmt.Errorf("trainer: update: %w", err)
	}
	norm = float64(read[0])
	if ok = finite(norm); ok {
		r.updates++
	}
	return norm, ok, nil
}
