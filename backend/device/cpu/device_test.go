package cpu

import (
	"testing"

	"github.com/gomlx/compute"
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
func TestCompliance(t *testing.T) { backendtest.RunAll(t, withoutFunctions{newDevice(t, 2)}, nil) }

// withoutFunctions is a device that does not say that it has functions: it has those that declare operations alone.
type withoutFunctions struct{ *Device }

func (d withoutFunctions) Capabilities() compute.Capabilities {
	c := d.Device.Capabilities()
	c.Functions = false
	return c
}
