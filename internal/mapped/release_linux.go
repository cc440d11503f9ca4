package mapped

import (
	"os"
	"syscall"
	"unsafe"
)

// Release tells the system that a part of a mapped file is not needed for now. Its pages leave the memory of the
// process, and are loaded again when they are used.
func Release(content []byte) {
	page := os.Getpagesize()
	first := uintptr(unsafe.Pointer(unsafe.SliceData(content)))
	skip := int(-first % uintptr(page)) // to the first whole page
	if n := (len(content) - skip) / page * page; n > 0 {
		_ = syscall.Madvise(content[skip:skip+n], syscall.MADV_DONTNEED) // advice: nothing breaks without
	}
}
