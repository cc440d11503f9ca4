package trainer

import "slices"

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
