//go:build cgo

package xla_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/model"
)

// TestDecode_LikeSteps: a loop on the device draws the tokens that single steps do, with and without top-k and top-p.
func TestDecode_LikeSteps(t *testing.T) {
	for name, w := range weights(t) {
		for _, config := range configs {
			if testing.Short() && (name != "tiny" || config != configs[0]) {
				continue // seconds of compilation each
			}
			t.Run(name+" "+config, func(t *testing.T) {
				on, a := device(t, config), adapter(t, w.Config)
				run := func(steps int) []*engine.Result {
					params, err := w.Params(on)
					require.NoError(t, err)
					e, err := engine.New(engine.Options{Device: on, Config: w.Config, Params: params, Slots: 4, FewShapes: true, DecodeSteps: steps})
					require.NoError(t, err)
					defer e.Close()
					loaded, err := engine.NewAdapter(on, a)
					require.NoError(t, err)
					rng := rand.New(rand.NewPCG(seed, 8))
					results := make([]*engine.Result, 12)
					var wg sync.WaitGroup
					for i := range results {
						r := engine.Request{
							Prompt: tokens(rng, w.Config, 2+rng.IntN(3)), MaxTokens: 5 + rng.IntN(60), Seed: rng.Uint64(), End: []int32{3, 9}, Adapter: loaded,
							Sampling: model.Sampling{Temperature: []float64{0, 1, 0.8}[i%3], TopP: []float64{1, 0.9}[i%2], TopK: []int{0, 20}[i/2%2]},
						}
						wg.Go(func() {
							var err error
							results[i], err = e.Complete(context.Background(), r)
							require.NoError(t, err)
						})
					}
					wg.Wait()
					return results
				}
				want, got, most := run(1), run(16), 0.0
				for i := range want {
					require.Equal(t, want[i].IDs, got[i].IDs, "reply %d, seed %d", i, seed)
					require.Equal(t, want[i].Reason, got[i].Reason)
					most = max(most, farthest(t, want[i].Logprobs, got[i].Logprobs), farthest(t, want[i].Sampled, got[i].Sampled))
				}
				t.Logf("logprobs of replies differ by %.2g", most)
				require.Less(t, most, rounding)
			})
		}
	}
}
