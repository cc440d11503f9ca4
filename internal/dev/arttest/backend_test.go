package arttest_test

import (
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/backendtest"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// TestRegister_Base: a backend fills in the base of a model that names none.
func TestRegister_Base(t *testing.T) {
	for given, want := range map[string]string{"": "tiny", "other": "other"} {
		m := art.NewModel("m", &art.ModelOptions{Base: given})
		if err := m.Register(t.Context(), &arttest.Backend{}); err != nil || m.Options().Base != want {
			t.Errorf("%q: base %q, error %v", given, m.Options().Base, err)
		}
	}
	b := &arttest.Backend{}
	b.Close()
	m := art.NewModel("m", nil)
	if err := m.Register(t.Context(), b); err == nil || m.Options().Base != "" {
		t.Errorf("after a registration that failed: base %q, error %v", m.Options().Base, err)
	}
}

func TestBackend_Contract(t *testing.T) {
	backendtest.Run(t, func(*testing.T) art.Backend { return &arttest.Backend{} })
}

// A backend without optional interfaces passes too: the suite tests only those that are implemented.
func TestBackend_ContractMinimal(t *testing.T) {
	backendtest.Run(t, func(*testing.T) art.Backend { return struct{ art.Backend }{&arttest.Backend{}} })
}
