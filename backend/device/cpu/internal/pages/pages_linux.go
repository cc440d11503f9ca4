package pages

import (
	"syscall"
	"unsafe"
)

const advice = 14 // MADV_HUGEPAGE

// prefer asks the system for huge pages, for those that lie within the memory.
func prefer(base unsafe.Pointer, size int) {
	skip := int(-uintptr(base) % Huge)
	if n := (size - skip) / Huge * Huge; n > 0 {
		_ = syscall.Madvise(unsafe.Slice((*byte)(unsafe.Add(base, skip)), n), advice) // nothing breaks without
	}
}
