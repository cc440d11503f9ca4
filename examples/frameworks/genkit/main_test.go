package main

import (
	"testing"

	"github.com/goart-dev/art/examples/frameworks/frameworkstest"
)

// Tools that fail leave every sampled token in exactly one sample.
func TestAgent_EveryTokenInOneSample(t *testing.T) {
	if r := frameworkstest.Check(t, example()); r.Failed == 0 {
		t.Errorf("%+v", r)
	}
}
