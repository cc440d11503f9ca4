// Package memory allocates the tensors of the CPU device, and shows them as slices. What is given back is used again.
package memory

import (
	"runtime/debug"
	"slices"
	"sync"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/pages"
	"github.com/goart-dev/art/internal/machine"
)

// alignment of tensors.
const alignment = pages.Line

// Span is memory of a tensor: bytes at an aligned address. The garbage collector keeps it alive through base.
type Span struct {
	Base unsafe.Pointer
	Size int
}

// Pool hands out spans, and keeps those that come back for the next call of the same size. A training step allocates
// the same sizes over and over.
type Pool struct {
	mu   sync.Mutex
	free map[int][]Span
	held int // bytes in free

	whole  []Span // arenas, as they were allocated
	arenas []Span // what no run uses of them

	fresh int // bytes that were allocated since garbage was collected
}

const (
	// most is what is kept in free: enough for the outputs of a step, little beside a model.
	most = 128 << 20
	// collected is what may be allocated before garbage is collected.
	collected = 64 << 20
	// wide is how many times as large as a run an arena of more than collected may be that the run gets. Otherwise
	// sampling would take the arena of training, which would need another meanwhile.
	wide = 16
)

// Round is the size that is allocated for size bytes.
func Round(size int) int { return max(alignment, (size+alignment-1)/alignment*alignment) }

// Alloc returns memory of a size. Its contents are undefined.
func (m *Pool) Alloc(size int) Span {
	size = Round(size)
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.reuse(size); ok {
		return s
	}
	return m.new(size)
}

// Zeros returns memory of zeros. What was not used before is not written, so that the system provides its pages when
// they are first touched.
func (m *Pool) Zeros(size int) Span {
	size = Round(size)
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.reuse(size); ok {
		clear(Bytes(s.Base, s.Size))
		return s
	}
	return m.new(size)
}

// reuse takes memory of a size that came back.
func (m *Pool) reuse(size int) (Span, bool) {
	list := m.free[size]
	if len(list) == 0 {
		return Span{}, false
	}
	last := len(list) - 1
	s := list[last]
	list[last], m.free[size] = Span{}, list[:last]
	m.held -= size
	return s, true
}

// new allocates a span of zeros. Every so many bytes it collects garbage first: the collector of its own accord would
// wait until there is as much garbage as there are weights.
func (m *Pool) new(size int) Span {
	if m.fresh += size; m.fresh > collected {
		m.fresh = 0
		machine.Collect()
	}
	return New(size)
}

// New allocates a span of zeros. A large one begins with a huge page, so that nearly all of it can be in such pages.
func New(size int) Span { return Span{pages.New(size, size >= 4*pages.Huge), size} }

// Release takes memory back.
func (m *Pool) Release(s Span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.Size > most {
		return
	}
	if m.free == nil || m.held+s.Size > most { // sizes change: what is not taken any more must go
		m.free, m.held = map[int][]Span{}, 0
	}
	m.free[s.Size] = append(m.free[s.Size], s)
	m.held += s.Size
}

// Arena returns memory for what lives within a run. All computations share the arenas: of about one size there are as
// many as ever ran at once. A run gets the smallest that is large enough, so that few are large. Of one that is large
// enough for two it gets a part, and another run may have the rest: so small micro-batches take no memory beside what a
// large one had. If none is large enough, a new one replaces the largest.
func (m *Pool) Arena(size int) Span {
	m.mu.Lock()
	defer m.mu.Unlock()
	size = Round(size)
	i := m.fitting(size)
	if i < 0 {
		return m.newArena(size)
	}
	s := m.arenas[i]
	if s.Size < size {
		m.drop(s)
		return m.newArena(size)
	}
	m.arenas = slices.Delete(m.arenas, i, i+1) // which forgets what lies behind the end of the list
	if part := (size + pages.Huge - 1) / pages.Huge * pages.Huge; s.Size > collected && s.Size >= 2*part {
		m.arenas = append(m.arenas, Span{unsafe.Add(s.Base, part), s.Size - part})
		s.Size = part
	}
	return s
}

// newArena allocates an arena. Before a large one, free memory goes back to the system.
func (m *Pool) newArena(size int) (s Span) {
	if size > collected {
		debug.FreeOSMemory() // or the pages of an arena that was dropped would stay
		s, m.fresh = New(size), 0
	} else {
		s = m.new(size)
	}
	m.whole = append(m.whole, s)
	return s
}

// drop lets go of an arena that a larger one replaces: of a large one with all large ones that no run uses.
func (m *Pool) drop(s Span) {
	replaced := func(x Span) bool { return x == s || x.Size > collected && s.Size > collected }
	var gone []Span
	m.arenas = slices.DeleteFunc(m.arenas, func(x Span) bool {
		if !replaced(x) || !slices.Contains(m.whole, x) {
			return false // a run may use another part of it
		}
		gone = append(gone, x)
		return true
	})
	m.whole = slices.DeleteFunc(m.whole, func(x Span) bool { return slices.Contains(gone, x) })
}

// fitting returns the index of the smallest arena of at least a size, of the largest if there is none, and -1 if there
// are no arenas of about the size.
func (m *Pool) fitting(size int) int {
	best := -1
	for i, s := range m.arenas {
		switch {
		case m.whole[m.of(s)].Size > max(collected, wide*size) || size > max(collected, wide*s.Size):
			// for runs of another size
		case best < 0:
			best = i
		case m.arenas[best].Size < size: // a larger one is better
			if s.Size > m.arenas[best].Size {
				best = i
			}
		case s.Size >= size && s.Size < m.arenas[best].Size:
			best = i
		}
	}
	return best
}

// Keep takes an arena back, and joins the parts of one that no run uses any more.
func (m *Pool) Keep(s Span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.of(s)
	m.arenas = slices.DeleteFunc(m.arenas, func(part Span) bool {
		switch {
		case m.of(part) != of: // two arenas may have no gap, but the collector keeps each alive through its own address
		case part.end() == uintptr(s.Base):
			s = Span{part.Base, part.Size + s.Size}
			return true
		case s.end() == uintptr(part.Base):
			s.Size += part.Size
			return true
		}
		return false
	})
	m.arenas = append(m.arenas, s)
}

// of is the index of the arena that a part is of.
func (m *Pool) of(part Span) int {
	return slices.IndexFunc(m.whole, func(s Span) bool {
		return uintptr(s.Base) <= uintptr(part.Base) && uintptr(part.Base) < s.end()
	})
}

// end is the address behind a span.
func (s Span) end() uintptr { return uintptr(s.Base) + uintptr(s.Size) }

// Held is what is kept for the next calls and in no use now, in bytes.
func (m *Pool) Held() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.held
	for _, s := range m.arenas {
		n += s.Size
	}
	return n
}
