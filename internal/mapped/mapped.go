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
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	size := int(info.Size()) // what a slice can hold
	if !info.Mode().IsRegular() || int64(size) != info.Size() {
		return nil, nil, fmt.Errorf("%s: not a regular file that fits into memory", path)
	}
	return contentOf(f, size)
}
