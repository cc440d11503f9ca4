package trainer

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// TestInputs_Shapes: the tensors of micro-batches have the shapes of their layouts, with branches and without.
func TestInputs_Shapes(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 8))
	branches := map[int]bool{}
	for _, alone := range []bool{false, true} {
		micro, err := New(smallTarget, Options{Device: graphtest.CPU(t), Alone: alone}).microBatches(
			group(rng, 8, 200, 500, 1000), 0)
		require.NoError(t, err)
		for _, m := range micro {
			inputs, shapes := lossInputs(m.MicroBatch, 3), inputShapes(m.Layout)
			require.Len(t, inputs, len(shapes))
			for i, x := range inputs {
				require.Equal(t, shapes[i], x.(*tensors.Tensor).Shape(), "tensor %d of %+v", i, m.Layout)
			}
			branches[len(shapes)] = true
		}
	}
	require.Greater(t, len(branches), 1, "none has branches")
}
