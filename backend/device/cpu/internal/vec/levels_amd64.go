package vec

import "unsafe"

var kernelsOf = [numLevels]*kernels{Portable: &kernelsPortable, AVX2: &kernelsAVX2, AVX512: &kernelsAVX512}

//go:noescape
func prefetchLines(p unsafe.Pointer, lines int)

// copyLines copies the lines of planes: at least one, of one, of 32 bytes.
//
//go:noescape
func copyLines(dst, src unsafe.Pointer, planes int, p *Plane)

// copiesLines tells whether there is a kernel for [Lines].
func copiesLines(l Level) bool { return l != Portable }
