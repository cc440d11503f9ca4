package vec

import "unsafe"

//go:noescape
func fetchAhead(p unsafe.Pointer, lines int)
