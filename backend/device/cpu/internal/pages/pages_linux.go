package cpu

import (
	"syscall"
	"unsafe"
)

const adviseHugePage = 14 // MADV_HUGEPAGE

// preferHuge asks the system for huge pages: weights that are read from end to end miss the address cache less often.
func preferHuge(base unsafe.Pointer, size int) {
	skip := int(-uintptr(base) % hugePage)
	if n := (size - skip) / hugePage * hugePage; n > 0 {
		_ = syscall.Madvise(bytesAt(unsafe.Add(base, skip), n), adviseHugePage) // advice: nothing breaks without
	}
}
