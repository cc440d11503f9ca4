package engine

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// TestComplete_NotFinite: requests to an adapter with NaN fail, and those of other adapters in the same slots, before,
// at the same time and after, have the same replies as without it.
func TestComplete_NotFinite(t *testing.T) {
	for _, steps := range []int{1, 6} {
		t.Run(fmt.Sprintf("%d tokens a call", steps), func(t *testing.T) {
			e := decodeEngine(t, graphtest.Device(t), steps, 2)
			a := testAdapter(t, 8)
			var data [][]float32
			for _, p := range a.Params() {
				p.Data[0] = float32(math.NaN())
				data = append(data, p.Data)
			}
			require.NoError(t, a.SetParams(data))
			damaged, err := e.NewAdapter(a)
			require.NoError(t, err)
			requests := decodeRequests(rand.New(rand.NewPCG(testSeed, 33)), 8, []*Adapter{nil})
			for i := range requests {
				if steps > 1 { // the CPU device supports top-k and top-p in single steps only
					requests[i].Sampling.TopK, requests[i].Sampling.TopP = 0, 1
				}
			}
			want := all(t, e, requests)
			mixed := append([]Request(nil), requests...)
			for i := range mixed {
				if i%2 == 1 {
					mixed[i].Adapter = damaged
				}
			}
			got, errs := some(e, mixed)
			for i := range mixed {
				if i%2 == 1 {
					require.ErrorIs(t, errs[i], ErrNotFinite)
					continue
				}
				require.NoError(t, errs[i])
				likeSteps(t, want[i:i+1], got[i:i+1], 0)
			}
			likeSteps(t, want, all(t, e, requests), 0)
			_, err = e.Complete(context.Background(), mixed[1])
			require.ErrorContains(t, err, "logprob 0 is NaN")
		})
	}
}
