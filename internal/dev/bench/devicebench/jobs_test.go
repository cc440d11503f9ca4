package devicebench

import (
	"regexp"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu"
)

// TestJobs: names are unique, and the operations that peers are compared in are there.
func TestJobs(t *testing.T) {
	seen := map[string]bool{}
	for _, j := range Jobs() {
		if seen[j.Name] || !regexp.MustCompile(`^[a-z]+/\d+x\d+(x\d+/(plain|transposed))?$`).MatchString(j.Name) {
			t.Errorf("%q is there twice, or is no name", j.Name)
		}
		seen[j.Name] = true
	}
	for _, want := range []string{
		"matmul/512x512x512/plain", "matmul/2048x2048x2048/plain", "matmul/64x896x4864/transposed",
		"matmul/1x896x151936/plain", "matmul/1x896x151936/transposed", "matmul/2048x896x8/plain",
		"add/4096x1024", "exp/256x896", "sum/256x896", "softmax/256x896", "rmsnorm/256x896", "swiglu/256x896", "rope/256x896", "adamw/256x896", "transpose/256x896",
	} {
		if !seen[want] {
			t.Errorf("no %s", want)
		}
	}
}

// newDevice returns a device that ends with the test.
func newDevice(t *testing.T) *cpu.Device {
	t.Helper()
	d, err := cpu.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Finalize)
	return d
}
