package trainer

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/pack"
	"github.com/goart-dev/art/internal/plan"
)

// TestFewLayouts: micro-batches of sequences that share nothing have the layouts that are listed and no others, with
// all MicroTokens or fewer, with a bound of sequences or without; and each of those that are listed occurs.
func TestFewLayouts(t *testing.T) {
	for _, c := range []struct{ micro, length int }{{600, 500}, {256, 2000}, {4096, 100}, {0, 700}} {
		tr := New(smallTarget, Options{Device: graphtest.CPU(t), FewShapes: true, MicroTokens: c.micro, Alone: true})
		listed := map[pack.Layout]bool{}
		for _, l := range FewLayouts(tr.plan, plan.Sizes{MicroTokens: c.micro}, c.length) {
			require.False(t, listed[l], "%+v", l)
			listed[l] = true
			micro, err := tr.microBatches(batchFor(l), 0)
			require.NoError(t, err)
			require.Len(t, micro, 1)
			require.Equal(t, l, micro[0].Layout)
		}
		rng := rand.New(rand.NewPCG(seed, uint64(c.length)))
		whole := tr.sizes.MicroTokens
		for i := range 100 {
			tr.sizes.MicroTokens = whole >> (i % 4)
			batch := randomBatch(rng, 1+rng.IntN(1+rng.IntN(64)), 100, 3+rng.IntN(c.length-2))
			micro, err := tr.microBatches(batch, []int{0, 5}[i%2])
			require.NoError(t, err)
			for _, m := range micro {
				require.True(t, listed[m.Layout], "%+v", m.Layout)
			}
		}
	}
}

// batchFor is a batch that fills a layout.
func batchFor(l pack.Layout) (batch []grpo.Sequence) {
	for i := range l.Rows {
		s := grpo.Sequence{
			IDs: make([]int32, l.Length+1), Trained: make([]bool, l.Length+1), Logprobs: make([]float32, l.Length+1),
			Weight: 1, Trajectory: i,
		}
		for at := range l.Trained / l.Rows {
			s.Trained[l.Length-at] = true // what follows the last of them is not read
		}
		batch = append(batch, s)
	}
	return batch
}
