package trainer

import (
	"fmt"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
)

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
