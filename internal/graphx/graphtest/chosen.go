package graphtest

import (
	"fmt"
	"math"
	"os"
	"sync"
	"testing"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu"
)

// DeviceEnv is the environment variable that chooses the device that tests run on: "xla:cpu" or another name that
// local.Options takes. The default is the CPU device.
const DeviceEnv = "ART_TEST_DEVICE"

// rounding is how far results may be from those that have the same bits on the CPU device, relative to the largest
// number of a list: other devices choose the order of a sum by the shape of a graph.
const rounding = 1e-5

// SameBits requires equal bits, NaN included, or on a device other than the CPU device equal numbers within rounding,
// relative to the largest one.
func SameBits(t testing.TB, want, got []float32, format string, args ...any) {
	t.Helper()
	what := fmt.Sprintf(format, args...)
	if len(want) != len(got) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	allowed := 0.0
	for _, w := range want {
		if !onCPU() && !math.IsInf(float64(w), 0) {
			allowed = max(allowed, rounding*math.Abs(float64(w)))
		}
	}
	for i, w := range want {
		same := math.Float32bits(w) == math.Float32bits(got[i])
		if !same && !(math.Abs(float64(w)-float64(got[i])) <= allowed && allowed > 0) {
			t.Fatalf("%s: other bits: element %d is %v, want %v within %.2g", what, i, got[i], w, allowed)
		}
	}
}

// Rounding is 0 on the CPU device, and on others how far logprobs may be from those that have the same bits there.
func Rounding() float64 {
	if onCPU() {
		return 0
	}
	return 10 * rounding
}

// Complete returns a device that has all operations: the one that tests run on, or in place of the CPU device
// [Reference].
func Complete(t testing.TB) compute.Backend {
	t.Helper()
	if onCPU() {
		return Reference(t)
	}
	return Device(t)
}

// HasLoops reports whether the device that tests run on can run loops of several steps.
func HasLoops() bool { return !onCPU() }

// onCPU reports whether tests run on the CPU device.
func onCPU() bool {
	name := os.Getenv(DeviceEnv)
	return name == "" || name == cpu.Name
}

// chosen opens the device of DeviceEnv.
func chosen() (compute.Backend, error) {
	if onCPU() {
		return onlyCPU()
	}
	name := os.Getenv(DeviceEnv)
	device, err := compute.NewWithConfig(name)
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", DeviceEnv, name, err)
	}
	return device, nil
}

var onlyCPU = sync.OnceValues(func() (compute.Backend, error) { return cpu.New(nil) })

// CPU returns the CPU device, whatever tests run on: for what no other device reports, such as the memory of a graph.
func CPU(t testing.TB) compute.Backend {
	t.Helper()
	device, err := onlyCPU()
	if err != nil {
		t.Fatal(err)
	}
	return device
}
