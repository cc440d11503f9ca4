// Package graphtest runs graphs in tests.
package graphtest

import (
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/dev/race"
)

var shared = sync.OnceValues(chosen)

// Device returns the device that tests run on, the CPU device unless [DeviceEnv] has another, one for all tests of a
// process.
func Device(t testing.TB) compute.Backend {
	t.Helper()
	device, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return device
}

var reference = sync.OnceValues(func() (compute.Backend, error) { return gobackend.New("ops_sequential") })

// Reference returns GoMLX's own Go device, which has more operations and is slow, one for all tests of a process.
// It skips the test under the race detector, which ends the process in that device; see package race.
func Reference(t testing.TB) compute.Backend {
	t.Helper()
	if race.Enabled {
		t.Skip("GoMLX's own device does not run under the race detector")
	}
	device, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	return device
}

// Run builds a graph and runs it once.
func Run(
	t testing.TB, device compute.Backend, build func(in []*graph.Node) []*graph.Node, inputs ...*tensors.Tensor,
) []*tensors.Tensor {
	t.Helper()
	exec, err := graph.NewExec(device, build)
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Finalize()
	return Call(t, exec, inputs...)
}

// Call runs a graph.
func Call(t testing.TB, exec *graph.Exec, inputs ...*tensors.Tensor) []*tensors.Tensor {
	t.Helper()
	args := make([]any, len(inputs))
	for i, x := range inputs {
		args[i] = x
	}
	out, err := exec.Call(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Tensor copies values.
func Tensor[T float32 | float64 | int32](values []T, dims ...int) *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(append([]T{}, values...), dims...)
}

// Values copies a tensor from the device.
func Values[T float32 | float64](t testing.TB, x *tensors.Tensor) []T {
	t.Helper()
	v, err := tensors.CopyFlatData[T](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
