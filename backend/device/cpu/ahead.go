package cpu

import (
	"slices"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// While a block of a loop is computed, the memory of the next one is fetched: otherwise the first operation on each tensor waits
// for memory, and all others for that. Kernels of several operations fetch what they read line by line, while they compute. What no such
// kernel reads is fetched after the instructions, a part after each, for which these wait at times.

// ahead is what is fetched after an instruction: a part of what an instruction reads or writes through a pointer.
type ahead struct {
	instr    int // that points
	from, to int // 64ths of a block
}

// nearAhead is how many bytes ahead a kernel of several operations fetches what it reads, where a loop is that kernel.
const nearAhead = 2048

// fetchedBytes is the size of the tensors of a loop from which on they are fetched: smaller ones may be in a cache.
const fetchedBytes = 8 << 20

// planAhead shares the tensors of a loop out among its instructions.
func (l *loop) planAhead() {
	var points, works []int
	bytes := 0
	for i, in := range l.instrs {
		switch {
		case in.do == point && !in.row && !in.v.of.virtual:
			points = append(points, i)
			bytes += l.numel * in.v.of.size
		case in.do >= apply && !in.row:
			works = append(works, i)
		}
	}
	if len(works) < 2 || bytes < fetchedBytes || l.piece > 0 {
		return
	}
	points = slices.DeleteFunc(points, func(i int) bool { return l.fetchedBy(l.instrs[i].dst) })
	l.ahead = make([][]ahead, len(l.instrs))
	for k, p := range points {
		turns := (len(works) - k%len(works) + len(points) - 1) / len(points) // works k, k+points, ...
		if k >= len(works) {
			turns = 1
		}
		for t := range turns {
			w := works[(k+t*len(points))%len(works)]
			l.ahead[w] = append(l.ahead[w], ahead{p, 64 * t / turns, 64 * (t + 1) / turns})
		}
	}
}

// fetchedBy tells a kernel that reads a register to fetch the next block of it, if there is one that does such a thing.
func (l *loop) fetchedBy(register int) bool {
	for _, in := range l.instrs {
		if in.do == combine && in.all.kernel.Fetches && slices.Contains(in.all.in, register) {
			in.all.ahead = 4 * l.block
			return true
		}
	}
	return false
}

// fetchNext fetches the share of an instruction of the block next.
func (l *loop) fetchNext(r *run, i int, next block) {
	for _, a := range l.ahead[i] {
		v := l.instrs[a.instr].v
		size := next.n * v.of.size
		from := size * a.from / 64
		vec.Fetch(unsafe.Add(r.ptr(v, v.off+next.first), from), (size*a.to/64-from+63)/64)
	}
}
