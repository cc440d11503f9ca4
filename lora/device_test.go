package lora

import (
	"math/rand/v2"
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

// tensor copies values.
func tensor[T float32 | float64](values []T, dims ...int) *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(append([]T{}, values...), dims...)
}

// values copies a tensor from the device.
func values[T float32 | float64](t testing.TB, x *tensors.Tensor) []T {
	t.Helper()
	v, err := tensors.CopyFlatData[T](x)
	require.NoError(t, err)
	return v
}

// normal returns n random numbers.
func normal(src *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(src.NormFloat64())
	}
	return out
}

// linear is the base layer of tests: x [..., In] times w [Out, In].
func linear(w *graph.Node) func(x *graph.Node) *graph.Node {
	return func(x *graph.Node) *graph.Node {
		return graph.DotGeneral(x, []int{x.Rank() - 1}, nil, w, []int{1}, nil)
	}
}
