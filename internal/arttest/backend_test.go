package arttest_test

import (
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/backendtest"
	"github.com/goart-dev/art/internal/arttest"
)

func TestBackend_Contract(t *testing.T) {
	backendtest.Run(t, func(*testing.T) art.Backend { return &arttest.Backend{} })
}

// A backend without optional interfaces passes too: the suite tests only those that are implemented.
func TestBackend_ContractMinimal(t *testing.T) {
	backendtest.Run(t, func(*testing.T) art.Backend { return struct{ art.Backend }{&arttest.Backend{}} })
}
