package main

import (
	"errors"

	"github.com/goart-dev/art"
)

// prompted returns a model behind an OpenAI-compatible URL, which is measured beside the one that is trained, by the same
// rollouts. The backend for it is to be plugged in here: it is an error until then.
func prompted(_, _ string) (*art.Model, error) {
	return nil, errors.New("-baseline: there is no backend for models behind an API yet; leave the flag out")
}
