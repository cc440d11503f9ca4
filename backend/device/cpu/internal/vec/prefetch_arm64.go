package vec

import "unsafe"

//go:noescape
func prefetchLines(p unsafe.Pointer, lines int)
