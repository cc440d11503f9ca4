package compile

import (
	"slices"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
)

// Rows that are too long for L1, such as those of logits, are computed in pieces, as often as there are reductions one
// after another. A phase is what is computed in one pass: the next needs a reduction of the whole row. What a later
// phase needs too is computed again where that is cheap; else it is kept for the whole row.

// inPieces reports whether all reductions of a loop can be computed piece by piece.
func (g *generator) inPieces() bool {
	return !slices.ContainsFunc(g.loop.Instrs, func(in ir.Instr) bool {
		return in.Do == ir.Reduce && !ir.ReducesInPieces(in.Op, in.In)
	})
}

// allocatePieces makes the phases, and gives each register memory of its own.
func (g *generator) allocatePieces() {
	l := g.loop
	l.Block, l.Piece, l.Registers = l.Inner, PieceLength, len(g.kinds)
	crossing := g.phases()
	l.Offsets = make([]int, len(g.kinds))
	for r, k := range g.kinds {
		l.Offsets[r] = -1
		if k.alias {
			continue
		}
		n := l.Piece
		switch {
		case k.row:
			n = 1
		case crossing[r]:
			n = l.Inner
			l.Crossing, l.Sizes = append(l.Crossing, r), append(l.Sizes, k.size)
		}
		l.Offsets[r] = l.Scratch
		l.Scratch += memory.Round(n * k.size)
	}
}

// phasePlanner sorts the instructions of a loop into phases.
type phasePlanner struct {
	g        *generator
	by       []int // instruction that writes a register, but for an alias
	aliasing []int // and the one that makes it an alias; -1 for none
	phase    []int // in which a register is there
	crossing []bool
	in       []map[int]bool // instructions for elements, of each phase
}

// phases fills those of the loop, and returns the registers that must hold a row.
func (g *generator) phases() []bool {
	l := g.loop
	n := len(g.kinds)
	p := phasePlanner{
		g: g, by: slices.Repeat([]int{-1}, n), aliasing: slices.Repeat([]int{-1}, n),
		phase: make([]int, n), crossing: make([]bool, n),
	}
	for i, in := range l.Instrs {
		if in.Do < ir.Apply {
			p.aliasing[in.Dst] = i
			continue
		}
		p.by[in.Dst] = i
		at := 0
		for _, r := range in.Src {
			at = max(at, p.phase[r])
		}
		for len(l.Phases) <= at {
			l.Phases, p.in = append(l.Phases, ir.Phase{}), append(p.in, map[int]bool{})
		}
		p.phase[in.Dst] = at
		if in.Do == ir.Reduce {
			p.phase[in.Dst]++
		}
		if in.Row {
			l.Phases[at].Rows = append(l.Phases[at].Rows, i)
			continue
		}
		p.add(at, i)
	}
	for i, in := range l.Instrs {
		if in.Row && in.Do < ir.Apply && in.Do != ir.FillOne && in.Do != ir.Preload {
			l.Phases[0].Rows = append(l.Phases[0].Rows, i)
		}
	}
	for i := range l.Phases {
		slices.Sort(l.Phases[i].Rows)
		for k := range p.in[i] {
			l.Phases[i].Elements = append(l.Phases[i].Elements, k)
		}
		slices.Sort(l.Phases[i].Elements)
	}
	return p.crossing
}

// add puts an instruction for elements, and what brings its operands, into a phase.
func (p *phasePlanner) add(at, i int) {
	if p.in[at][i] {
		return
	}
	p.in[at][i] = true
	in := p.g.loop.Instrs[i]
	if k := p.aliasing[in.Dst]; k >= 0 && !p.g.kinds[in.Dst].row {
		p.in[at][k] = true
	}
	for _, r := range in.Src {
		// Make a register available to a phase.
		k := p.g.kinds[r]
		switch by := p.by[r]; {
		case k.row || k.keep:
		case p.aliasing[r] >= 0: // of a tensor, or of what is stored in one
			p.in[at][p.aliasing[r]] = true
		case p.phase[r] == at:
		case p.again(by):
			p.add(at, by)
		default:
			p.crossing[r] = true
		}
	}
}

// again reports whether an instruction is computed again rather than stored: it is cheap and reads tensors and rows
// only.
func (p *phasePlanner) again(i int) bool {
	in := p.g.loop.Instrs[i]
	return cheap[in.Op] && !slices.ContainsFunc(in.Src[:], func(r int) bool {
		k := p.g.kinds[r]
		return !k.row && !k.keep && (p.by[r] >= 0 || p.aliasing[r] < 0)
	})
}

// cheap operations are computed again rather than stored for a later phase.
var cheap = map[compute.OpType]bool{
	compute.OpTypeAdd: true, compute.OpTypeSub: true, compute.OpTypeMul: true,
	compute.OpTypeEqual: true, compute.OpTypeNotEqual: true, compute.OpTypeLessThan: true,
	compute.OpTypeLessOrEqual: true, compute.OpTypeGreaterThan: true, compute.OpTypeGreaterOrEqual: true,
}
