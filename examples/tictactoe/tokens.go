package main

import (
	"fmt"

	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/basemodel"
)

// tokens returns the texts of the tokens of a run, for the live page.
func tokens(run *rundir.Run) (func(id int32) []byte, error) {
	tok, err := basemodel.Tokenizer(run.About().Base)
	if err != nil {
		return nil, fmt.Errorf("the tokenizer of %s: %w", run.About().Base, err)
	}
	return tok.TokenBytes, nil
}
