package cpu

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/pages"
)

// alignment of tensors.
const alignment = pages.Line

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

	fresh int // bytes that were allocated since garbage was collected
}

const (
	// most is what is kept in free: enough for the outputs of a step, little beside a model.
	most = 128 << 20
	// collected is what may be allocated before garbage is collected.
	collected = 64 << 20
)

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
	return m.new(size)
}

// new allocates a span. Every so many bytes it collects garbage first: the collector of its own accord would wait until there is as
// much garbage as there are weights.
func (m *memory) new(size int) span {
	if m.fresh += size; m.fresh > collected {
		m.fresh = 0
		runtime.GC()
	}
	return newSpan(size)
}

// newSpan allocates a span. A large one begins with a large page, so that nearly all of it can lie in such pages.
func newSpan(size int) span { return span{pages.New(size, size >= 4*pages.Huge), size} }

func (m *memory) release(s span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.size > most {
		return
	}
	if m.free == nil || m.held+s.size > most { // sizes change: what is not taken any more must go
		m.free, m.held = map[int][]span{}, 0
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
		s = span{} // it is garbage
		s = m.new(rounded(size))
	}
	return s
}

// keep takes an arena back.
func (m *memory) keep(s span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.arenas = append(m.arenas, s)
}
