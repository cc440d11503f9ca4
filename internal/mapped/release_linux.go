package mapped

import (
	"os"
	"syscall"
	"unsafe"
)

// Release lets the system evict the pages of a part of a mapped file. They are loaded again when they are used.
func Release(content []byte) {
	page := os.Getpagesize()
	first := uintptr(unsafe.Pointer(unsafe.SliceData(content)))
	skip := int(-first % uintptr(page)) // to the first whole page
	if n := (len(content) - skip) / page * page; n > 0 {
		_ = syscall.Madvise(content[skip:skip+n], syscall.MADV_DONTNEED) // advice: nothing breaks without
	}
}
