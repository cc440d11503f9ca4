package vec

import "unsafe"

// Fetch asks for memory that is read or written soon, from p on, in lines of 64 bytes. It does not wait.
func Fetch(p unsafe.Pointer, lines int) {
	if lines > 0 {
		fetchAhead(p, lines)
	}
}
