package compile

import (
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
)

// cache is how much memory the registers of a loop may take: what stays in L1.
const cache = 32 << 10

// Numbers of elements of a block, but for rows that are longer. Without rows it is a multiple of the smallest, so that
// no vector crosses a cache line. Long blocks have fewer calls, but each worker shall get some.
const (
	smallestBlock = 128
	commonBlock   = 4096
	largestBlock  = 16384
	blocksEach    = 8 // that a worker gets, at least, if they are longer than common ones
)

// allocate chooses the size of a block, and gives registers that are in use at the same time different memory.
func (g *generator) allocate() {
	l := g.loop
	if l.Inner > LongRow && g.inPieces() {
		g.allocatePieces()
		return
	}
	slots, slot := g.slots()
	most := max(commonBlock, min(largestBlock, l.Numel/(blocksEach*g.c.opts.Workers)))
	l.Block = max(min(cache/g.perElement(slots), most)/smallestBlock, 1) * smallestBlock
	rows := 0
	if l.Inner > 0 {
		rows = max(1, l.Block/l.Inner)
		l.Block = rows * l.Inner
	}
	starts := make([]int, len(slots))
	for i, s := range slots {
		starts[i] = l.Scratch
		n := l.Block
		if s.row {
			n = rows
		}
		l.Scratch += memory.Round(n * s.size)
	}
	l.Registers = len(g.kinds)
	l.Offsets = make([]int, len(g.kinds))
	for r := range g.kinds {
		l.Offsets[r] = -1
		if slot[r] >= 0 {
			l.Offsets[r] = starts[slot[r]]
		}
	}
}

// perElement returns how many bytes of L1 an element takes: in the registers, and, if more than one instruction works
// on elements, in the tensors that they alias.
func (g *generator) perElement(slots []register) int {
	bytes, works := 1, 0
	for _, s := range slots {
		if !s.row {
			bytes += s.size
		}
	}
	for _, in := range g.loop.Instrs {
		if in.Do >= ir.Apply && !in.Row {
			works++
		}
	}
	for _, k := range g.kinds {
		if k.alias && !k.row && works > 1 {
			bytes += k.size
		}
	}
	return bytes
}

// slots returns the pieces of memory that are needed, and which one each register has.
func (g *generator) slots() (slots []register, slot []int) {
	slot = make([]int, len(g.kinds))
	busy := []int{} // instruction until which each slot is in use
	for r := range g.kinds {
		slot[r] = -1
	}
	for at := range g.loop.Instrs {
		for _, r := range g.loop.Instrs[at].Writes() {
			k := g.kinds[r]
			if k.alias || slot[r] >= 0 {
				continue
			}
			until := g.uses[r]
			if k.keep {
				until = len(g.loop.Instrs)
			}
			s := freeSlot(slots, busy, k, at)
			if s == len(slots) {
				slots, busy = append(slots, k), append(busy, 0)
			}
			slot[r], busy[s] = s, until
		}
	}
	return slots, slot
}

// freeSlot returns a slot like k that is not in use, or their number. One that is filled before the first block is its
// own.
func freeSlot(slots []register, busy []int, k register, at int) int {
	for i, s := range slots {
		if !k.keep && !s.keep && s.size == k.size && s.row == k.row && busy[i] < at {
			return i
		}
	}
	return len(slots)
}
