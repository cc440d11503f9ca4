package main

import (
	"errors"

	"github.com/goart-dev/art"
)

// prompted returns a model behind an OpenAI-compatible URL, which is measured by the same rollouts as the trained one.
// Its backend belongs here; until there is one, it is an error.
func prompted(_, _ string) (*art.Model, error) {
	return nil, errors.New("-baseline: there is no backend for models behind an API yet; leave the flag out")
}
