// Package pages allocates memory that lies in huge pages where the system has them. What is read or written in many
// places at once misses the processor's cache of addresses less often there: packing operands that lay idle took 368
// us, and takes 152 (docs/log, 2026-11-23, 512 cubed).
package pages

import "unsafe"

const (
	// Line is a line of the cache, and the widest vector, in bytes. All memory begins with one.
	Line = 64
	// Huge is the size of a huge page in bytes.
	Huge = 2 << 20
)

// New returns so many bytes of zeros, which the garbage collector keeps alive through the pointer. If it is to be
// aligned, it begins with a huge page, and takes up to one more than its size.
func New(size int, aligned bool) unsafe.Pointer {
	align := Line
	if aligned {
		align = Huge
	}
	raw := make([]byte, size+align)
	p := unsafe.Pointer(unsafe.SliceData(raw))
	p = unsafe.Add(p, int(-uintptr(p))&(align-1))
	prefer(p, size)
	return p
}
