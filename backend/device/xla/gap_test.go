//go:build cgo

package xla_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/internal/trainer"
)

// TestGap_PerBucket: the difference between the logprobs of sampler and trainer, for each number of tokens that the
// sampler has a graph for. On the CPU device it is 0.
func TestGap_PerBucket(t *testing.T) {
	w := weights(t)["tiny"]
	on, a := device(t, configs[0]), adapter(t, w.Config)
	params, err := w.Params(on)
	require.NoError(t, err)
	teacher := trainer.New(trainer.AdapterTarget(w.Config, params, a), trainer.Options{Device: on})
	gap := func(batch []grpo.Sequence) (most float64) {
		_, report, err := teacher.Train(context.Background(), trainer.AdapterState(a), batch, trainer.Run{
			Loss: grpo.PolicyLoss{Loss: credit.PPO}, Optimizer: grpo.DefaultAdamW(), Rate: func(int) float64 { return 0 }, Epochs: 1, MiniBatches: 1,
		})
		require.NoError(t, err)
		require.Equal(t, credit.NumTrained(batch), report.Gap.Tokens)
		t.Logf("gap at most %.2g, mean %.2g nats of %d tokens", report.Gap.Max, report.Gap.Mean(), report.Gap.Tokens)
		return report.Gap.Max
	}
	rng := rand.New(rand.NewPCG(seed, 5))
	sample := func(prompts []int, replies int) []grpo.Sequence {
		e, loaded := sampler(t, on, w, a, 4) // with nothing cached
		var batch []grpo.Sequence
		for i, n := range prompts {
			prompt := tokens(rng, w.Config, n)
			r, err := e.Complete(context.Background(), engine.Request{
				Prompt: prompt, MaxTokens: replies, Seed: uint64(i), Adapter: loaded, Sampling: sampling.Settings{Temperature: 1, TopP: 1},
			})
			require.NoError(t, err)
			batch = append(batch, sequence(prompt, r, i))
		}
		return batch
	}
	buckets := []int{4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256}
	if testing.Short() {
		buckets = []int{4, 24, 128} // seconds of compilation each
	}
	for _, bucket := range buckets {
		least := bucket*2/3 + 1 // the previous bucket ends there or earlier
		t.Logf("prompt of %d", bucket)
		require.Less(t, gap(sample([]int{least, min(bucket, 250), min(bucket-1, 249)}, 1)), 1e-4)
	}
	t.Log("one token at a time")
	require.Less(t, gap(sample([]int{1, 5, 20, 40, 90, 150, 200}, 50)), 1e-4)
}

// sequence is a reply to train on.
func sequence(prompt []int32, r *engine.Result, i int) grpo.Sequence {
	ids := append(append([]int32{}, prompt...), r.IDs...)
	s := grpo.Sequence{
		IDs: ids, Trained: make([]bool, len(ids)), Logprobs: make([]float32, len(ids)), Advantage: 1, Weight: 1, Trajectory: i,
	}
	for j := range r.IDs {
		s.Trained[len(prompt)+j] = true
		s.Logprobs[len(prompt)+j] = r.Logprobs[j]
	}
	return s
}
