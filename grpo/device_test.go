package grpo

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
)

// newDevice returns GoMLX's own device; its default parallelism deadlocks.
func newDevice(t testing.TB) compute.Backend {
	t.Helper()
	device, err := gobackend.New("parallelism=-1")
	require.NoError(t, err)
	t.Cleanup(device.Finalize)
	return device
}

// run builds and runs a graph once.
func run(t testing.TB, device compute.Backend, build func(in []*graph.Node) []*graph.Node, inputs ...*tensors.Tensor) []*tensors.Tensor {
	t.Helper()
	exec, err := graph.NewExec(device, build)
	require.NoError(t, err)
	defer exec.Finalize()
	args := make([]any, len(inputs))
	for i, x := range inputs {
		args[i] = x
	}
	out, err := exec.Call(args...)
	require.NoError(t, err)
	return out
}

// vector copies values to a tensor of one axis.
func vector[T float32 | float64](values []T) *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(append([]T{}, values...), len(values))
}

// scalar makes a tensor without axes.
func scalar[T float32 | float64](value T) *tensors.Tensor { return tensors.FromScalar(value) }

// values copies a tensor from the device.
func values[T float32 | float64](t testing.TB, x *tensors.Tensor) []T {
	t.Helper()
	v, err := tensors.CopyFlatData[T](x)
	require.NoError(t, err)
	return v
}
