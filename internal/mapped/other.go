//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package mapped

import (
	"io"
	"os"
)

// Open reads a file into memory, where there is no memory map.
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
	content = make([]byte, size)
	if _, err := io.ReadFull(f, content); err != nil {
		return nil, nil, err
	}
	return content, func() error { return nil }, nil
}

// Release does nothing: the file was read.
func Release([]byte) {}
