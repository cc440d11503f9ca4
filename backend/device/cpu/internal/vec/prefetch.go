package vec

import "unsafe"

// Prefetch asks for memory that is read or written soon, from p on, in cache lines of 64 bytes. It does not wait.
func Prefetch(p unsafe.Pointer, lines int) {
	if lines > 0 {
		prefetchLines(p, lines)
	}
}
