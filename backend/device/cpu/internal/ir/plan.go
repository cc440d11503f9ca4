package ir

import (
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
)

// Graph is a graph that is to be compiled: what it takes, and what it returns.
type Graph struct {
	Name       string
	Parameters []*Node
	Outputs    []*Node
}

// Plan is a compiled graph: steps that run one after another, and the tensors that they read and write. It is data.
type Plan struct {
	Inputs  []Input
	Outputs []Output
	Steps   []Step
	Tensors []*Tensor
	Arena   int // bytes of memory for what exists within a run only
}

// Input is a parameter.
type Input struct {
	Name     string
	Shape    shapes.Shape
	Packable bool // every step that reads it takes a packed matrix too
}

// Output is a value that is returned.
type Output struct {
	Shape shapes.Shape
	Of    *Tensor
	Donor int // input whose memory it takes over when that is donated; -1 for none
}

// WorkBytes returns how much memory a run takes besides its inputs and outputs.
func (p *Plan) WorkBytes(workers int) int {
	most := 0
	for _, s := range p.Steps {
		if k, ok := s.(*Attention); ok && !k.Wide { // a wide tile is in the arena
			most = max(most, workers*k.Tiles()*memory.Round(k.TileBytes()))
		}
	}
	return memory.Round(p.Arena) + most
}

// CeilDiv is x/y, rounded up.
func CeilDiv(x, y int) int { return (x + y - 1) / y }
