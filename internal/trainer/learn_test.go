package trainer

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/lora"
)

// TestTrain_Overfits: supervised training makes four random sequences nearly certain, with all weights and with an
// adapter that starts at B = 0.
func TestTrain_Overfits(t *testing.T) {
	c := testConfig()
	a := testAdapter(t, lora.Config{Rank: 16, Targets: []string{"v_proj", "o_proj", "up_proj", "down_proj"}}, c, true)
	for _, s := range []subject{full(t, c), adapted(t, c, a)} {
		t.Run(s.name, func(t *testing.T) {
			batch := randomBatch(rand.New(rand.NewPCG(seed, 40)), 4, 64, 14)
			for i := range batch {
				batch[i].IDs[0] = int32(i) // which distinguishes them
				batch[i].Weight = 1
			}
			run := plainRun()
			run.Rate, run.Epochs = constant(3e-2), 24
			var losses []float64
			last := 0.0
			run.Progress = func(_ int, soFar Report) {
				sum := soFar.Metrics["loss/sft"] * float64(soFar.Updates)
				losses = append(losses, sum-last)
				last = sum
			}
			state, _, err := s.trainer(t, Options{}).Train(context.Background(), s.state, batch, run)
			require.NoError(t, err)
			t.Logf("loss from %.3f to %.4f", losses[0], losses[len(losses)-1])
			require.Greater(t, losses[0], 2.0)
			require.Less(t, losses[len(losses)-1], 0.2*losses[0])
			require.InDelta(t, losses[0], plainSupervised(batch, s.scoreAll(t, s.state.Params, batch), nil), 1e-4)
			require.Less(t, plainSupervised(batch, s.scoreAll(t, state.Params, batch), nil), losses[len(losses)-2],
				"what was learned is in the state")
		})
	}
}

// TestTrain_Reinforces: tokens of a positive advantage become likelier, those of a negative one less likely.
func TestTrain_Reinforces(t *testing.T) {
	for _, kind := range []credit.Loss{credit.CISPO, credit.PPO} {
		for _, s := range both(t) {
			batch := randomBatch(rand.New(rand.NewPCG(seed, 41)), 4, 64, 20)
			for i := range batch {
				batch[i].Advantage, batch[i].Weight = []float64{1, -1}[i%2], 1
			}
			batch = s.scored(t, batch, func() float32 { return 0 })
			run := plainRun()
			run.Loss, run.Rate = grpo.PolicyLoss{Loss: kind}, constant(1e-3)
			state, report, err := s.trainer(t, Options{}).Train(context.Background(), s.state, batch, run)
			require.NoError(t, err)
			require.InDelta(t, 0, report.First["loss/log_ratio_max"], graphtest.Rounding())
			after := s.scoreAll(t, state.Params, batch)
			for i := range batch {
				change := 0.0
				for j, trained := range batch[i].Trained {
					if trained {
						change += float64(after[i][j] - batch[i].Logprobs[j])
					}
				}
				require.Positive(t, change*batch[i].Advantage, "%s %s: sequence %d of advantage %v changed by %v", kind, s.name, i,
					batch[i].Advantage, change)
			}
		}
	}
}

// TestTrain_FirstGapIsZero: logprobs of the forward pass that samples are the trainer's own, bit for bit, however its
// micro-batches are cut: tied and untied, with all weights (whose head is the embedding, transposed in the graph) and
// with an adapter (whose head is a copy). The contraction of 144 is longer than a panel.
func TestTrain_FirstGapIsZero(t *testing.T) {
	for _, tied := range []bool{true, false} {
		c := testConfig()
		c.TieEmbeddings, c.IntermediateSize = tied, 144
		for _, s := range []subject{full(t, c), adapted(t, c, testAdapter(t, lora.Config{Rank: 8}, c, false))} {
			batch := s.scored(t, randomBatch(rand.New(rand.NewPCG(seed, 42)), 6, 64, 60), func() float32 { return 0 })
			for _, opts := range []Options{{Workers: 2}, {Workers: 1, MicroTokens: 1}} {
				run := plainRun()
				run.Loss, run.MiniBatches = grpo.PolicyLoss{}, 2
				_, report, err := s.trainer(t, opts).Train(context.Background(), s.state, batch, run)
				require.NoError(t, err)
				for _, gap := range []string{"loss/log_ratio_max", "loss/log_ratio_mean", "loss/kl_old_new"} {
					require.InDelta(t, 0, report.First[gap], graphtest.Rounding(), "%s, tied %v, %s, %+v, seed %d", gap, tied, s.name,
						opts, seed)
				}
				require.Positive(t, report.Metrics["loss/log_ratio_max"], "the second update is off policy")
			}
		}
	}
}

// TestTrain_PaddingBeyondTheContext: a sequence may fill a context whose length is no multiple of what rows are padded
// to.
func TestTrain_PaddingBeyondTheContext(t *testing.T) {
	c := testConfig()
	c.MaxPositions = 100
	s := full(t, c)
	batch := s.scored(t, []grpo.Sequence{randomSequenceOf(101)}, func() float32 { return 0 })
	run := plainRun()
	run.Loss, batch[0].Advantage = grpo.PolicyLoss{}, 1
	_, report, err := s.trainer(t, Options{}).Train(context.Background(), s.state, batch, run)
	require.NoError(t, err)
	require.Zero(t, report.First["loss/log_ratio_max"])
	require.Zero(t, report.Computed%112, "100 tokens padded to 112")
}
