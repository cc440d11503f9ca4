//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package mapped

import (
	"os"
	"syscall"
)

func contentOf(f *os.File, size int) (content []byte, unmap func() error, err error) {
	if size == 0 { // which cannot be mapped
		return nil, func() error { return nil }, nil
	}
	content, err = syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	return content, func() error { return syscall.Munmap(content) }, nil
}
