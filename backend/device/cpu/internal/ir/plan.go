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
		most = max(most, workers*deltaBytes(s))
	}
	return memory.Round(p.Arena) + most
}

// Memory of the parts of a plan, measured on those of trainings: of a step with its kernels, of an instruction of a
// loop, of a tensor, and of a part of a concatenation; that of a matrix of a grouped matmul is the size of its view.
const (
	stepBytes        = 5 << 8
	instructionBytes = 5 << 6
	tensorBytes      = 5 << 6
	partBytes        = 3 << 8
	matrixBytes      = 1 << 7
)

// Bytes is about how much memory the plan takes while nothing runs it.
func (p *Plan) Bytes() int {
	n := stepBytes*len(p.Steps) + tensorBytes*len(p.Tensors)
	for _, t := range p.Tensors {
		if t.Memory == InConstant {
			n += memory.Round(t.Count * t.Size)
		}
	}
	for _, s := range p.Steps {
		if l := LoopOf(s); l != nil {
			n += instructionBytes * len(l.Instrs)
		}
		if c, ok := s.(*Concat); ok {
			n += partBytes * len(c.Parts)
		}
		if g, ok := s.(*Grouped); ok {
			n += matrixBytes * len(g.Matrices)
		}
		for _, o := range offsetsOf(s) {
			n += o.Bytes()
		}
	}
	return n
}

// offsetsOf lists the offsets of a step.
func offsetsOf(s Step) []*Offsets {
	switch s := s.(type) {
	case *Gather:
		return []*Offsets{&s.From, &s.To}
	case *Scatter:
		return []*Offsets{&s.From, &s.At}
	case *ReduceColumns:
		return []*Offsets{&s.Groups, &s.Rows}
	case *ArgMinMax:
		return []*Offsets{&s.Offsets}
	case *CumSum:
		return []*Offsets{&s.To, &s.From}
	case *Grouped:
		return []*Offsets{&s.X.At, &s.IDs.At}
	case *GroupedOuter:
		return []*Offsets{&s.X.At, &s.IDs.At, &s.Y.At}
	}
	return nil
}

// CeilDiv is x/y, rounded up.
func CeilDiv(x, y int) int { return (x + y - 1) / y }
