package trainer

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
)

// TestTrain_Gap: all tokens that the policy being trained sampled are compared before any update, those of later
// mini-batches too, and apart from tokens that an older policy sampled.
func TestTrain_Gap(t *testing.T) {
	for _, s := range both(t) {
		for _, miniBatches := range []int{1, 3} {
			batch := s.scored(t, randomBatch(rand.New(rand.NewPCG(seed, 90)), 7, 64, 30), func() float32 { return 0 })
			old := 0
			for i := range batch {
				batch[i].Staleness = make([]int, len(batch[i].IDs))
				for j := range batch[i].Staleness {
					if i%2 == 1 && j%3 == 0 {
						batch[i].Staleness[j] = 2
						batch[i].Logprobs[j] -= 0.5
						if batch[i].Trained[j] {
							old++
						}
					}
				}
			}
			require.Positive(t, old)
			run := plainRun()
			run.Loss, run.MiniBatches, run.Epochs = grpo.PolicyLoss{}, miniBatches, 2
			_, report, err := s.trainer(t, Options{Workers: 1}).Train(context.Background(), s.state, batch, run)
			require.NoError(t, err)
			sameDifference(t, Difference{Tokens: credit.NumTrained(batch) - old}, report.Gap,
				fmt.Sprintf("%s, %d mini-batches", s.name, miniBatches))
			require.Equal(t, old, report.OffPolicy.Tokens)
			require.InDelta(t, 0.5, report.OffPolicy.Max, 1e-5)
			require.InDelta(t, 0.5, report.OffPolicy.Mean(), 1e-5)
			require.Len(t, report.Ratios, credit.NumTrained(batch))
			for _, ratio := range report.Ratios {
				require.Contains(t, []float64{1, 1.65}, math.Round(float64(ratio)*100)/100, "exp(0) and exp(0.5)")
			}
		}
	}
}

// TestTrain_GapIsSeen: a token of the last mini-batch that another model sampled is not missed.
func TestTrain_GapIsSeen(t *testing.T) {
	s := both(t)[1]
	for i := range 4 {
		batch := s.scored(t, randomBatch(rand.New(rand.NewPCG(seed, 91)), 4, 64, 30), func() float32 { return 0 })
		last := len(batch[i].Trained) - 1
		for !batch[i].Trained[last] {
			last--
		}
		batch[i].Logprobs[last] -= 2
		run := plainRun()
		run.Loss, run.MiniBatches = grpo.PolicyLoss{}, 4
		_, report, err := s.trainer(t, Options{}).Train(context.Background(), s.state, batch, run)
		require.NoError(t, err)
		require.InDelta(t, 2, report.Gap.Max, 1e-5)
	}
}

// TestTrain_SupervisedHasNoGap: nothing sampled its tokens.
func TestTrain_SupervisedHasNoGap(t *testing.T) {
	s := both(t)[1]
	batch := randomBatch(rand.New(rand.NewPCG(seed, 92)), 4, 64, 30)
	run := plainRun()
	run.MiniBatches = 2
	_, report, err := s.trainer(t, Options{}).Train(context.Background(), s.state, batch, run)
	require.NoError(t, err)
	require.Zero(t, report.Gap)
	require.Zero(t, report.OffPolicy)
}
