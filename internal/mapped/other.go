//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package mapped

import (
	"io"
	"os"
)

func contentOf(f *os.File, size int) (content []byte, unmap func() error, err error) {
	content = make([]byte, size)
	if _, err := io.ReadFull(f, content); err != nil {
		return nil, nil, err
	}
	return content, func() error { return nil }, nil
}
