package trainer

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/pack"
)

// TestTrain_BoundedCompilations: there is one graph for each shape of micro-batches, one for each of the probe, and one
// for the update, for sums of gradients, and for their norm.
func TestTrain_BoundedCompilations(t *testing.T) {
	s := full(t, testConfig())
	device, compiled := graphtest.Counting(t)
	tr := New(s.target, Options{Device: device, FewShapes: true, MicroTokens: 512})
	seen, probes := map[pack.Layout]bool{}, map[pack.Layout]bool{}
	run := Run{Loss: grpo.PolicyLoss{}, Optimizer: grpo.DefaultAdamW(), Rate: func(int) float64 { return 1e-3 }, Epochs: 1,
		MiniBatches: 1}
	for step := range uint64(25) {
		rng := rand.New(rand.NewPCG(seed, step))
		batch := randomBatch(rng, 1+rng.IntN(12), 64, 3+rng.IntN(100))
		micro, err := tr.microBatches(batch, 0)
		require.NoError(t, err)
		for _, m := range micro {
			seen[m.Layout] = true
		}
		micro, err = tr.microBatches(beginnings(batch), 0)
		require.NoError(t, err)
		for _, m := range micro {
			probes[m.Layout] = true
		}
		_, _, err = tr.Train(context.Background(), s.state, batch, run)
		require.NoError(t, err)
	}
	t.Logf("%d graphs for %d shapes, and %d of the probe", compiled.Load(), len(seen), len(probes))
	require.Equal(t, int64(len(seen)+len(probes)+3), compiled.Load())
	require.LessOrEqual(t, len(probes), 6, "lengths 32, 64 and 128, of one row, two numbers of trained tokens")
	require.LessOrEqual(t, len(seen), 14,
		"lengths 32, 64 and 128, of 1, 4 and 16 rows while they fit, two numbers of trained tokens")
}
