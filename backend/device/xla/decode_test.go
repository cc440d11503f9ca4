//go:build cgo

package xla_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/lora"
)

// TestDecode_LikeSteps: a loop on the device samples the same tokens as single steps, with and without top-k and top-p.
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
					e, err := engine.New(engine.Options{
						Device: on, Config: w.Config, Params: params, Slots: 4, FewShapes: true, DecodeSteps: steps,
					})
					require.NoError(t, err)
					defer e.Close()
					loaded, err := e.NewAdapter(a)
					require.NoError(t, err)
					rng := rand.New(rand.NewPCG(seed, 8))
					results := make([]*engine.Result, 12)
					var wg sync.WaitGroup
					for i := range results {
						r := engine.Request{
							Prompt: tokens(rng, w.Config, 2+rng.IntN(3)), MaxTokens: 5 + rng.IntN(60), Seed: rng.Uint64(), End: []int32{3, 9}, Adapter: loaded,
							Sampling: sampling.Settings{Temperature: []float64{0, 1, 0.8}[i%3], TopP: []float64{1, 0.9}[i%2], TopK: []int{0, 20}[i/2%2]},
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

// TestDecode_Ends: the replies are those of single steps: of one token, up to the end of the context, with more end ids
// than the loop compares, with adapters of two shapes at once, and after a cancelled request.
func TestDecode_Ends(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of compilation")
	}
	w, on := weights(t)["random"], device(t, configs[1])
	var layers []lora.LayerShape
	for _, l := range w.Config.Linears() {
		layers = append(layers, lora.LayerShape(l))
	}
	small, err := lora.New(lora.Config{Rank: 2, Alpha: 16}, layers, seed)
	require.NoError(t, err)
	run := func(steps int) []*engine.Result {
		params, err := w.Params(on)
		require.NoError(t, err)
		e, err := engine.New(engine.Options{
			Device: on, Config: w.Config, Params: params, Slots: 3, Context: 20, FewShapes: true, DecodeSteps: steps,
		})
		require.NoError(t, err)
		defer e.Close()
		var adapters []*engine.Adapter
		for _, a := range []*lora.Adapter{adapter(t, w.Config), small} {
			loaded, err := e.NewAdapter(a)
			require.NoError(t, err)
			adapters = append(adapters, loaded)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_, err = e.Complete(ctx, engine.Request{Prompt: []int32{1, 2}, Adapter: adapters[0]})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		rng := rand.New(rand.NewPCG(seed, 9))
		results := make([]*engine.Result, 10)
		var wg sync.WaitGroup
		for i := range results {
			r := engine.Request{
				Prompt: tokens(rng, w.Config, 2+i%3), MaxTokens: []int{1, 0, 16, 15, 2}[i%5], Seed: rng.Uint64(),
				Adapter: adapters[i%2], Sampling: sampling.Settings{Temperature: 1, TopP: 1},
			}
			if i%5 == 3 {
				r.End = tokens(rng, w.Config, 60)
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
	want, got := run(1), run(16)
	for i := range want {
		require.Equal(t, want[i].IDs, got[i].IDs, "reply %d, seed %d", i, seed)
		require.Equal(t, want[i].Reason, got[i].Reason)
		require.Less(t, farthest(t, want[i].Logprobs, got[i].Logprobs), rounding)
		if i%5 == 1 {
			require.Len(t, got[i].IDs, 20-(2+i%3))
		}
	}
}
