package cpu

import (
	"slices"

	"github.com/gomlx/compute"
)

// Rows that are too long for L1, such as those of logits, are computed in pieces, as often as there are reductions one after
// another. A phase is what is computed in one pass: the next needs a reduction of the whole row. What a later phase needs too
// is computed again where that is cheap; else it is kept for the whole row.

// inPieces reports whether all reductions of a loop can be computed piece by piece.
func (g *generator) inPieces() bool {
	return !slices.ContainsFunc(g.loop.instrs, func(in instr) bool {
		return in.do == doReduce && !reducesInPieces(in.op, in.in)
	})
}

// allocatePieces makes the phases, and gives each register memory of its own.
func (g *generator) allocatePieces() {
	l := g.loop
	l.block, l.piece, l.registers = l.inner, pieceLength, len(g.kinds)
	crossing := g.phases()
	l.offsets = make([]int, len(g.kinds))
	for r, k := range g.kinds {
		l.offsets[r] = -1
		if k.alias {
			continue
		}
		n := l.piece
		switch {
		case k.row:
			n = 1
		case crossing[r]:
			n = l.inner
			l.crossing, l.sizes = append(l.crossing, r), append(l.sizes, k.size)
		}
		l.offsets[r] = l.scratch
		l.scratch += rounded(n * k.size)
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
	for i, in := range l.instrs {
		if in.do < doApply {
			p.aliasing[in.dst] = i
			continue
		}
		p.by[in.dst] = i
		at := 0
		for _, r := range in.src {
			at = max(at, p.phase[r])
		}
		for len(l.phases) <= at {
			l.phases, p.in = append(l.phases, phase{}), append(p.in, map[int]bool{})
		}
		p.phase[in.dst] = at
		if in.do == doReduce {
			p.phase[in.dst]++
		}
		if in.row {
			l.phases[at].rows = append(l.phases[at].rows, i)
			continue
		}
		p.add(at, i)
	}
	for i, in := range l.instrs {
		if in.row && in.do < doApply && in.do != doFill && in.do != doPreload {
			l.phases[0].rows = append(l.phases[0].rows, i)
		}
	}
	for i := range l.phases {
		slices.Sort(l.phases[i].rows)
		for k := range p.in[i] {
			l.phases[i].elements = append(l.phases[i].elements, k)
		}
		slices.Sort(l.phases[i].elements)
	}
	return p.crossing
}

// add puts an instruction for elements, and what brings its operands, into a phase.
func (p *phasePlanner) add(at, i int) {
	if p.in[at][i] {
		return
	}
	p.in[at][i] = true
	in := p.g.loop.instrs[i]
	if k := p.aliasing[in.dst]; k >= 0 && !p.g.kinds[in.dst].row {
		p.in[at][k] = true
	}
	for _, r := range in.src {
		p.bring(at, r)
	}
}

// bring makes a register available to a phase.
func (p *phasePlanner) bring(at, r int) {
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

// again reports whether an instruction is computed again rather than stored: it is cheap and reads tensors and rows only.
func (p *phasePlanner) again(i int) bool {
	in := p.g.loop.instrs[i]
	return cheap[in.op] && !slices.ContainsFunc(in.src[:], func(r int) bool {
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
