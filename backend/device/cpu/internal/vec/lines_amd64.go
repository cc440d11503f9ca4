package vec

import "unsafe"

//go:noescape
func copyLines(dst, src unsafe.Pointer, lines, bytes, step int)

// copiesLines tells whether there is a kernel for [Lines].
func copiesLines(l Level) bool { return l != Portable }
