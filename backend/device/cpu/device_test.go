package cpu

import (
	"testing"

	"github.com/gomlx/compute/support/backendtest"
)

// newDevice returns a device that ends with the test.
func newDevice(t testing.TB, workers int) *Device {
	t.Helper()
	d, err := New(&Options{Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Finalize)
	return d
}

// TestCompliance runs GoMLX's suite for devices.
func TestCompliance(t *testing.T) { backendtest.RunAll(t, newDevice(t, 2), nil) }
