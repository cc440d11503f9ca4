//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package mapped

import (
	"os"
	"syscall"
	"unsafe"
)

// Open maps a file read-only, so that its pages are loaded when they are used and shared between processes.
func Open(path string) (content []byte, unmap func() error, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	size, err := fileSize(f)
	if err != nil {
		return nil, nil, err
	}
	if size == 0 { // which cannot be mapped
		return nil, func() error { return nil }, nil
	}
	content, err = syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, &os.PathError{Op: "mmap", Path: path, Err: err}
	}
	return content, func() error { return syscall.Munmap(content) }, nil
}

// Release tells the system that a part of a mapped file is not needed for now. Its pages leave the memory of the process, and
// are loaded again when they are used.
func Release(content []byte) {
	page := os.Getpagesize()
	first := uintptr(unsafe.Pointer(unsafe.SliceData(content)))
	skip := int(-first % uintptr(page)) // to the first whole page
	if n := (len(content) - skip) / page * page; n > 0 {
		_ = syscall.Madvise(content[skip:skip+n], syscall.MADV_DONTNEED) // advice: nothing breaks without
	}
}
