package trainer

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/dev/fixtures"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// fixtureSubjects are the ways to train a model of internal/dev/testdata/architectures.
func fixtureSubjects(t *testing.T, dir string) []subject {
	t.Helper()
	w, err := model.Load(dir)
	require.NoError(t, err)
	params, err := w.Params(graphtest.Device(t))
	require.NoError(t, err)
	a := testAdapter(t, lora.Config{Rank: 8}, w.Config, false)
	return []subject{
		{name: "full", weights: w, target: FullTarget(w.Config), state: FullState(w)},
		{name: "adapter", weights: w, adapter: a, target: AdapterTarget(w.Config, params, a), state: AdapterState(a)},
	}
}

// TestArchitectures_FirstGapIsZero: of every architecture, the trainer computes the logprobs that were sampled, bit for
// bit, and an update makes rewarded sequences likelier.
func TestArchitectures_FirstGapIsZero(t *testing.T) {
	for _, m := range fixtures.Models(t) {
		for _, s := range fixtureSubjects(t, m.Dir) {
			t.Run(m.Name+"/"+s.name, func(t *testing.T) {
				batch := s.scored(t, randomBatch(rand.New(rand.NewPCG(seed, 60)), 4, 64, 24), func() float32 { return 0 })
				for i := range batch {
					batch[i].Advantage, batch[i].Weight = 1, 1
				}
				run := plainRun()
				run.Loss, run.Rate = grpo.PolicyLoss{}, constant(1e-4)
				state, report, err := s.trainer(t, Options{}).Train(context.Background(), s.state, batch, run)
				require.NoError(t, err)
				require.InDelta(t, 0, report.First["loss/log_ratio_max"], graphtest.Rounding())
				before, after := s.scoreAll(t, s.state.Params, batch), s.scoreAll(t, state.Params, batch)
				change := float32(0)
				for i := range batch {
					for j, trained := range batch[i].Trained {
						if trained {
							change += after[i][j] - before[i][j]
						}
					}
				}
				require.Positive(t, change, "seed %d", seed)
			})
		}
	}
}
