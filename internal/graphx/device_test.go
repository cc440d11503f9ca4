package graphx

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
)

// newExec compiles a function of one output for as many shapes as the test has.
func newExec(t testing.TB, device compute.Backend, build func(in []*graph.Node) *graph.Node) *graph.Exec {
	t.Helper()
	exec, err := graph.NewExec(device, build)
	require.NoError(t, err)
	t.Cleanup(exec.Finalize)
	return exec.SetMaxCache(-1)
}

// call runs a graph of one output.
func call[T float32 | float64](t testing.TB, exec *graph.Exec, inputs ...*tensors.Tensor) []T {
	t.Helper()
	args := make([]any, len(inputs))
	for i, x := range inputs {
		args[i] = x
	}
	out, err := exec.Call1(args...)
	require.NoError(t, err)
	defer out.MustFinalizeAll()
	return tensors.MustCopyFlatData[T](out)
}

// tensor copies values.
func tensor[T float32 | float64](values []T, dims ...int) *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(append([]T{}, values...), dims...)
}
