package main

import (
	"os"
	"testing"

	"github.com/goart-dev/art/examples/frameworks/frameworkstest"
)

// TestAgent_EveryTokenInOneSample runs the agent with the Python that ART_PYTHON names:
//
//	ART_PYTHON=python go test ./examples/frameworks/langgraph
//
// Tools that fail leave every sampled token in exactly one sample. A run is one history, unless the model makes several
// calls in one reply of which one is no JSON: LangChain sends those in another order.
func TestAgent_EveryTokenInOneSample(t *testing.T) {
	python := os.Getenv("ART_PYTHON")
	if python == "" {
		t.Skip("ART_PYTHON is not set")
	}
	e, err := example(func() []string { return []string{python, "-c", agent} })
	if err != nil {
		t.Fatal(err)
	}
	if r := frameworkstest.Check(t, e); r.Failed == 0 || r.Branches > r.Ended/4 {
		t.Errorf("%+v", r)
	}
}
