package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/goart-dev/art/internal/basemodel"
)

// readInput reads a file that the user named. Its errors say what to do.
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

// parseIDs reads numbers separated by commas or spaces, in brackets or without. An empty text has none.
func parseIDs(text string) ([]int32, error) {
	text = strings.Trim(text, "[] \n")
	if text == "" {
		return nil, nil
	}
	var ids []int32
	for between := range strings.SplitSeq(text, ",") {
		parts := strings.Fields(between)
		if len(parts) == 0 {
			return nil, badUsage("--ids: there is no id between two commas, or after the last one, of %q", text)
		}
		for _, part := range parts {
			n, err := strconv.ParseInt(part, 10, 32)
			if err != nil || n < 0 {
				return nil, badUsage("--ids: %q is not an id; want numbers separated by commas", part)
			}
			ids = append(ids, int32(n))
		}
	}
	return ids, nil
}

// in adds the file or folder that an error is about. err may be nil.
func in(path string, err error) error {
	if err != nil {
		err = fmt.Errorf("%w (in %s)", err, path)
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func readJSON(path string, v any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return in(path, json.Unmarshal(content, v))
}
