package trainer

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
)

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

// state copies r back to the host, with the names and shapes of s.
func (r *deviceState) state(s *State) (*State, error) {
	out := &State{Names: slices.Clone(s.Names), Shapes: slices.Clone(s.Shapes), Updates: r.updates}
	for _, x := range []struct {
		to   *[][]float32
		from []*tensors.Tensor
	}{{&out.Params, r.params}, {&out.M, r.m}, {&out.V, r.v}} {
		for i, y := range x.from {
			values, err := tensors.CopyFlatData[float32](y)
			if err != nil {
				return nil, fmt.Errorf("trainer: %s: %w", s.Names[i], err)
			}
			*x.to = append(*x.to, values)
		}
	}
	return out, nil
}

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
	out, err := t.updates.Call(cfg, updateGraph(cfg, n), append(appendInputs(in, grads), scalars))
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
