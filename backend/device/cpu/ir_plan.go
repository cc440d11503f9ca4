package cpu

import "github.com/gomlx/compute/shapes"

// source is a graph that is to be compiled: what it takes, and what it returns.
type source struct {
	name       string
	parameters []*node
	outputs    []*node
}

// plan is a compiled graph: steps that run one after another, and the tensors that they read and write. It is data.
type plan struct {
	inputs  []input
	outputs []output
	steps   []step
	tensors []*tensor
	arena   int // bytes of memory for what exists within a run only
}

// input is a parameter.
type input struct {
	name     string
	shape    shapes.Shape
	packable bool // every step that reads it takes a packed matrix too
}

// output is a value that is returned.
type output struct {
	shape shapes.Shape
	of    *tensor
	donor int // input whose memory it takes over when that is donated; -1 for none
}

// workBytes returns how much memory a run takes besides its inputs and outputs.
func (p *plan) workBytes(workers int) int {
	most := 0
	for _, s := range p.steps {
		if k, ok := s.(*attention); ok && !k.wide { // a wide tile is in the arena
			most = max(most, workers*k.tiles()*rounded(k.tileBytes()))
		}
	}
	return rounded(p.arena) + most
}

// ceilDiv is x/y, rounded up.
func ceilDiv(x, y int) int { return (x + y - 1) / y }
