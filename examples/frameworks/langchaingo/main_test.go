package main

import (
	"testing"

	"github.com/goart-dev/art/examples/frameworks/frameworkstest"
)

// Tools that fail leave every sampled token in exactly one sample. langchaingo writes calls in its own way into the
// conversation, so that a run is several histories.
func TestAgent_EveryTokenInOneSample(t *testing.T) {
	if r := frameworkstest.Check(t, example()); r.Failed == 0 || r.Branches == 0 {
		t.Errorf("%+v", r)
	}
}
