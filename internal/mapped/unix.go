//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package mapped

import (
	"os"
	"syscall"
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
