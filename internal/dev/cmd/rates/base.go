package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/tiny"
)

// isWidth reports whether a base is a random model of some width.
func isWidth(base string) bool {
	_, err := strconv.Atoi(base)
	return err == nil
}

// openBase returns the path of a base and its configuration. A random model is written below dir.
func openBase(base, dir string) (path string, c *model.Config, err error) {
	if isWidth(base) {
		return randomBase(base, filepath.Join(dir, "base"))
	}
	open, err := basemodel.Open(base)
	if err != nil {
		return "", nil, err
	}
	c = open.Config
	return base, c, open.Close()
}

// randomBase writes a model of the shape of the built-in one, with another width and random weights.
func randomBase(width, dir string) (path string, c *model.Config, err error) {
	open, err := tiny.Open()
	if err != nil {
		return "", nil, err
	}
	shape := *open.Config
	if err := open.Close(); err != nil {
		return "", nil, err
	}
	hidden, err := strconv.Atoi(width)
	if err != nil || hidden < 64 || hidden%64 != 0 {
		return "", nil, fmt.Errorf("width %s: want a multiple of 64", width)
	}
	grown := func(n int) int { return n * hidden / shape.HiddenSize }
	shape.IntermediateSize, shape.NumHeads, shape.NumKVHeads = grown(shape.IntermediateSize), grown(shape.NumHeads),
		grown(shape.NumKVHeads)
	shape.HiddenSize = hidden
	w, err := model.Random(&shape, 1)
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err != nil {
		return "", nil, err
	}
	return dir, &shape, errors.Join(w.Save(dir), basemodel.ExportTokenizer(tiny.Name, dir))
}

// question asks for a word backwards, which answer has: a task that no base knows.
func question(a, b int) string { return "Reverse: " + letters(a) + " " + letters(b) }

func answer(a, b int) string { return letters(b) + " " + letters(a) }

// letters returns one of 20 letters.
func letters(i int) string { return string("bcdfghjklmnpqrstvwxz"[i%20]) }
