package cpu

// cache is how much memory the registers of a loop may take: what stays in L1.
const cache = 32 << 10

// Numbers of elements of a block, but for rows that are longer. Without rows it is a multiple of the smallest, so that no
// vector crosses a cache line. Long blocks have fewer calls, but each worker shall get some.
const (
	smallestBlock = 128
	commonBlock   = 4096
	largestBlock  = 16384
	blocksEach    = 8 // that a worker gets, at least, if they are longer than common ones
)

// allocate chooses the size of a block, and gives registers that are in use at the same time different memory.
func (g *generator) allocate() {
	l := g.loop
	if l.inner > longRow && g.inPieces() {
		g.allocatePieces()
		return
	}
	slots, slot := g.slots()
	most := max(commonBlock, min(largestBlock, l.numel/(blocksEach*g.c.opts.workers)))
	l.block = max(min(cache/g.perElement(slots), most)/smallestBlock, 1) * smallestBlock
	rows := 0
	if l.inner > 0 {
		rows = max(1, l.block/l.inner)
		l.block = rows * l.inner
	}
	starts := make([]int, len(slots))
	for i, s := range slots {
		starts[i] = l.scratch
		n := l.block
		if s.row {
			n = rows
		}
		l.scratch += rounded(n * s.size)
	}
	l.registers = len(g.kinds)
	l.offsets = make([]int, len(g.kinds))
	for r := range g.kinds {
		l.offsets[r] = -1
		if slot[r] >= 0 {
			l.offsets[r] = starts[slot[r]]
		}
	}
}

// perElement returns how many bytes of L1 an element takes: in the registers, and, if more than one instruction works on
// elements, in the tensors that they alias.
func (g *generator) perElement(slots []register) int {
	bytes, works := 1, 0
	for _, s := range slots {
		if !s.row {
			bytes += s.size
		}
	}
	for _, in := range g.loop.instrs {
		if in.do >= doApply && !in.row {
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
	for at := range g.loop.instrs {
		for _, r := range g.loop.instrs[at].writes() {
			k := g.kinds[r]
			if k.alias || slot[r] >= 0 {
				continue
			}
			until := g.uses[r]
			if k.keep {
				until = len(g.loop.instrs)
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

// freeSlot returns a slot like k that is not in use, or their number. One that is filled before the first block is its own.
func freeSlot(slots []register, busy []int, k register, at int) int {
	for i, s := range slots {
		if !k.keep && !s.keep && s.size == k.size && s.row == k.row && busy[i] < at {
			return i
		}
	}
	return len(slots)
}
