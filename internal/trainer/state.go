package trainer

import (
	"fmt"
	"slices"
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
