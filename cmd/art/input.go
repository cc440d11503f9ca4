package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/goart-dev/art/internal/basemodel"
)

// readInput reads a file that the user named, and says what to do where that cannot be.
func readInput(path string) ([]byte, error) {
	if basemodel.IsFolder(path) {
		return nil, fmt.Errorf("%s is a folder: name a file in it", path)
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: check the path", err)
	}
	return content, err
}
