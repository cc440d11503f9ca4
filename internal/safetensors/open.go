package safetensors

import (
	"fmt"

	"github.com/goart-dev/art/internal/mapped"
)

// Open maps a file into memory and checks it. The file must not change while it is open.
func Open(path string) (*File, error) {
	content, unmap, err := mapped.Open(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	f, err := Parse(content)
	if err != nil {
		_ = unmap() // the error of Parse is the one to return
		return nil, fmt.Errorf("safetensors: %s: %w", path, err)
	}
	f.unmap = unmap
	return f, nil
}
