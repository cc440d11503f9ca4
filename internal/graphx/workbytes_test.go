package graphx

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// TestWorkBytes: the result between two matmuls is what a run takes. Inputs and outputs are not counted, and nothing is
// run.
func TestWorkBytes(t *testing.T) {
	const n = 1 << 20 // rows: the matrix between has 128 MB
	device := graphtest.CPU(t)
	two, err := graph.NewExec(device,
		func(x, a, b *graph.Node) *graph.Node { return graph.Dot(graph.Dot(x, a).Product(), b).Product() })
	require.NoError(t, err)
	s := func(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }
	work, err := WorkBytes(two, []shapes.Shape{s(n, 2), s(2, 32), s(32, 2)})
	require.NoError(t, err)
	require.InDelta(t, 4*32*n, work, 1<<20)
	one, err := graph.NewExec(device, func(x, a *graph.Node) *graph.Node { return graph.Dot(x, a).Product() })
	require.NoError(t, err)
	work, err = WorkBytes(one, []shapes.Shape{s(n, 2), s(2, 32)})
	require.NoError(t, err)
	require.Less(t, work, int64(1<<20))
}
