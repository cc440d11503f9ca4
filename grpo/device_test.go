package grpo

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
)

// vector copies values to a tensor of one axis.
func vector[T float32 | float64](values []T) *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(append([]T{}, values...), len(values))
}

// scalar makes a tensor without axes.
func scalar[T float32 | float64](value T) *tensors.Tensor { return tensors.FromScalar(value) }

// graphKey says what a graph computes: all that it depends on but for the shapes of its inputs.
type graphKey struct {
	device compute.Backend
	of     any
}

// graphs are those that tests have compiled, which XLA takes long to do.
var graphs = map[graphKey]*graph.Exec{}

// compiled returns the graph of a key, which the first test that needs it builds.
func compiled(
	t *testing.T, device compute.Backend, of any, build func(in []*graph.Node) []*graph.Node,
) *graph.Exec {
	t.Helper()
	key := graphKey{device, of}
	if exec := graphs[key]; exec != nil {
		return exec
	}
	exec, err := graph.NewExec(device, build)
	require.NoError(t, err)
	graphs[key] = exec
	return exec
}
