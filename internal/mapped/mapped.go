// Package mapped maps files into memory; where the system cannot, it reads them.
//
// A file must not change while it is open: reading beyond the end of a mapped file that was truncated crashes the
// process.
package mapped

import (
	"fmt"
	"os"
)

// Open returns the content of a regular file: mapped read-only, so that its pages are loaded when they are used and
// shared between processes, or read into memory where there is no memory map. unmap ends it, and nothing may read
// content afterwards.
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
	return contentOf(f, size)
}

// fileSize returns the size of an open regular file as an int, which is what a slice can hold.
func fileSize(f *os.File) (int, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size := int(info.Size())
	if !info.Mode().IsRegular() || int64(size) != info.Size() {
		return 0, fmt.Errorf("%s: not a regular file that fits into memory", f.Name())
	}
	return size, nil
}
