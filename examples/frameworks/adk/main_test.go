package main

import (
	"testing"

	"github.com/goart-dev/art/examples/frameworks/frameworkstest"
)

// Tools that fail leave every sampled token in exactly one sample, and a run is one history. ADK tells the model of a
// tool that fails; what ends a run is that it has too many turns.
func TestAgent_EveryTokenInOneSample(t *testing.T) {
	if r := frameworkstest.Check(t, example()); r.Failed == 0 || r.Branches > 0 {
		t.Errorf("%+v", r)
	}
}
