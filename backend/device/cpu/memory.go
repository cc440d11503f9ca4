package cpu

import (
	"runtime"
	"sync"
	"unsafe"
)

// alignment of tensors: a cache line, and the widest vector.
const alignment = 64

// span is memory of a tensor: bytes at an aligned address. The garbage collector keeps it alive through base.
type span struct {
	base unsafe.Pointer
	size int
}

// memory hands out spans, and keeps those that come back for the next call of the same size. A training step allocates the
// same sizes over and over.
type memory struct {
	mu   sync.Mutex
	free map[int][]span
	held int // bytes in free

	arenas []span // that no run uses
}

// most is what is kept in free: enough for the outputs of a step, little beside a model.
const most = 256 << 20

// rounded is the size that is allocated for size bytes.
func rounded(size int) int { return max(alignment, (size+alignment-1)/alignment*alignment) }

func (m *memory) alloc(size int) span {
	size = rounded(size)
	m.mu.Lock()
	defer m.mu.Unlock()
	if list := m.free[size]; len(list) > 0 {
		last := len(list) - 1
		s := list[last]
		list[last], m.free[size] = span{}, list[:last]
		m.held -= size
		return s
	}
	return newSpan(size)
}

func newSpan(size int) span {
	raw := make([]byte, size+alignment)
	p := unsafe.Pointer(unsafe.SliceData(raw))
	skip := (alignment - uintptr(p)%alignment) % alignment
	preferHuge(p, size)
	return span{unsafe.Add(p, skip), size}
}

func (m *memory) release(s span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held+s.size > most {
		return
	}
	if m.free == nil {
		m.free = map[int][]span{}
	}
	m.free[s.size] = append(m.free[s.size], s)
	m.held += s.size
}

// arena returns memory for what lives within a run. All computations share the arenas: there are as many as ever ran at
// once, each as large as the largest that it served.
func (m *memory) arena(size int) span {
	m.mu.Lock()
	defer m.mu.Unlock()
	var s span
	if n := len(m.arenas); n > 0 {
		s, m.arenas[n-1] = m.arenas[n-1], span{} // what lies behind the end of a list stays alive
		m.arenas = m.arenas[:n-1]
	}
	if s.size < size {
		s = span{}
		makeRoom(size)
		s = newSpan(rounded(size))
	}
	return s
}

// makeRoom collects garbage before a large arena is allocated: the graph that it serves was just compiled, and what it was
// made from lies around, with the arena before. Beside gigabytes of tensors the collector would wait until there are gigabytes
// of garbage.
func makeRoom(size int) {
	if size >= 32<<20 {
		runtime.GC()
	}
}

// keep takes an arena back.
func (m *memory) keep(s span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.arenas = append(m.arenas, s)
}
