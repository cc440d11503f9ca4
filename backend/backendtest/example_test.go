package backendtest_test

import (
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/backendtest"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// The test of a backend, in its package. Here it is that of a fake; write your own in its place.
func Example() {
	contract := func(t *testing.T) { // func TestContract(t *testing.T)
		backendtest.Run(t, func(*testing.T) art.Backend { return &arttest.Backend{} })
	}
	_ = contract // go test calls it
}
