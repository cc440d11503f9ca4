package compile

import (
	"slices"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// While a block of a loop is computed, the memory of the next one is prefetched: otherwise the first operation on each
// tensor waits for memory, and all others for that. Kernels of several operations prefetch what they read, a cache line
// at a time, while they compute. What no such kernel reads is prefetched after the instructions, a part after each, for
// which these wait at times.

// nearAhead is how many bytes ahead a kernel of several operations prefetches what it reads, where a loop is that
// kernel.
const nearAhead = 2048

// prefetchedBytes is the size of the tensors of a loop from which on they are prefetched: smaller ones may be in a
// cache.
const prefetchedBytes = 8 << 20

// planPrefetches distributes the tensors of a loop over its instructions.
func planPrefetches(l *ir.Loop) {
	var aliases, works []int
	bytes := 0
	for i, in := range l.Instrs {
		switch {
		case in.Do == ir.Alias && !in.Row && !in.View.Of.Virtual:
			aliases = append(aliases, i)
			bytes += l.Numel * in.View.Of.Size
		case in.Do >= ir.Apply && !in.Row:
			works = append(works, i)
		}
	}
	if len(works) < 2 || bytes < prefetchedBytes || l.Piece > 0 {
		return
	}
	aliases = slices.DeleteFunc(aliases, func(i int) bool { return prefetchedByKernel(l, l.Instrs[i].Dst) })
	l.Prefetches = make([][]ir.Prefetch, len(l.Instrs))
	for k, p := range aliases {
		parts := (len(works) - k%len(works) + len(aliases) - 1) / len(aliases) // after works k, k+aliases, ...
		if k >= len(works) {
			parts = 1
		}
		for i := range parts {
			w := works[(k+i*len(aliases))%len(works)]
			l.Prefetches[w] = append(l.Prefetches[w], ir.Prefetch{Instr: p, From: 64 * i / parts, To: 64 * (i + 1) / parts})
		}
	}
}

// prefetchedByKernel tells a kernel that reads a register to prefetch the next block of it, if there is one that does
// such a thing.
func prefetchedByKernel(l *ir.Loop, register int) bool {
	for _, in := range l.Instrs {
		if in.Do == ir.Combine && in.Kernel.Of.Prefetches && slices.Contains(in.Kernel.In, register) {
			in.Kernel.Ahead = 4 * l.Block
			return true
		}
	}
	return false
}
