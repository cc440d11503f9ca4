package safetensors

import (
	"fmt"
	"os"
)

// Open maps a file into memory and checks it. The file must not change while it is open.
func Open(path string) (*File, error) {
	content, unmap, err := mapFile(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	f, err := Parse(content)
	if err != nil {
		_ = unmap() // the error of Parse is the one to tell
		return nil, fmt.Errorf("safetensors: %s: %w", path, err)
	}
	f.unmap = unmap
	return f, nil
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
