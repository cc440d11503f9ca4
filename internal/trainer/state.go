package trainer

import (
	"fmt"
	"slices"

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

// Clone returns a deep copy.
func (s *State) Clone() *State {
	return &State{
		Names: slices.Clone(s.Names), Shapes: slices.Clone(s.Shapes),
		Params: clone(s.Params), M: clone(s.M), V: clone(s.V), Updates: s.Updates,
	}
}

func clone(x [][]float32) [][]float32 {
	out := make([][]float32, len(x))
	for i := range x {
		out[i] = slices.Clone(x[i])
	}
	return out
}

// upload appends lists of values as inputs of a graph, and returns a function that frees them.
func (t *Trainer) upload(in []any, s *State, lists ...[][]float32) (all []any, free func(), err error) {
	var mine []*tensors.Tensor
	free = func() { finalize(mine) }
	for _, values := range lists {
		for i, v := range values {
			x, err := graphx.Upload(t.opts.Device, v, s.Shapes[i]...)
			if err != nil {
				free()
				return nil, nil, fmt.Errorf("trainer: %s: %w", s.Names[i], err)
			}
			in, mine = append(in, x), append(mine, x)
		}
	}
	return in, free, nil
}

// take sets one list of values from the outputs of a graph.
func (s *State) take(to [][]float32, from []*tensors.Tensor) error {
	for i := range to {
		data, err := tensors.CopyFlatData[float32](from[i])
		if err != nil {
			return fmt.Errorf("trainer: %s: %w", s.Names[i], err)
		}
		to[i] = data
	}
	return nil
}

// apply makes one update of s in place. It reports the gradient's norm, and false when that is not finite: s is then
// as it was.
func (t *Trainer) apply(s *State, grads [][]float32, cfg grpo.AdamW, rate float64) (norm float64, ok bool, err error) {
	exec, err := t.updateGraph(cfg, len(s.Names))
	if err != nil {
		return 0, false, err
	}
	in, free, err := t.upload(nil, s, s.Params, s.M, s.V, grads)
	if err != nil {
		return 0, false, err
	}
	defer free()
	in = append(in, tensors.FromFlatDataAndDimensions(cfg.Scalars(s.Updates+1, rate), grpo.NumScalars))
	out, err := exec.Call(in...)
	if err != nil {
		return 0, false, fmt.Errorf("trainer: update: %w", err)
	}
	defer finalize(out)
	n := len(s.Names)
	norm = float64(tensors.ToScalar[float32](out[3*n]))
	if !finite(norm) {
		return norm, false, nil
	}
	for i, to := range [][][]float32{s.Params, s.M, s.V} {
		if err := s.take(to, out[i*n:(i+1)*n]); err != nil {
			return 0, false, err
		}
	}
	s.Updates++
	return norm, true, nil
}
