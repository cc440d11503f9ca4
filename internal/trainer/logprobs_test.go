package trainer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
)

// TestLogprobs_AlignWithTokens: each list has the logprobs of its own sequence, whatever is computed beside it.
func TestLogprobs_AlignWithTokens(t *testing.T) {
	for _, s := range both(t) {
		rng := rand.New(rand.NewPCG(seed, 61))
		var batch []grpo.Sequence
		for _, n := range []int{40, 9, 40, 23, 5, 64, 9} {
			batch = append(batch, randomSequence(rng, 64, n))
		}
		tr := s.trainer(t, Options{})
		all, err := tr.Logprobs(t.Context(), s.state, batch, 3)
		require.NoError(t, err)
		require.Len(t, all, len(batch))
		for i := range batch {
			alone, err := tr.Logprobs(t.Context(), s.state, batch[i:i+1], 0)
			require.NoError(t, err)
			for j, trained := range batch[i].Trained {
				require.Equal(t, trained, all[i][j] != 0)
				require.InDelta(t, alone[0][j], all[i][j], 1e-5, "sequence %d, token %d", i, j)
			}
		}
		require.False(t, slices.Equal(all[0], all[2]), "two sequences of a length are told apart")
	}
}

// TestTrain_NeedsReference: a penalty without a reference would keep close to a probability of 1.
func TestTrain_NeedsReference(t *testing.T) {
	s := both(t)[0]
	rng := rand.New(rand.NewPCG(seed, 62))
	batch := []grpo.Sequence{randomSequence(rng, 64, 9)}
	run := Run{
		Loss: grpo.Penalized{Loss: grpo.PolicyLoss{}, KL: 0.1}, Optimizer: grpo.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8},
		Rate: func(int) float64 { return 1e-3 }, Epochs: 1, MiniBatches: 1,
	}
	_, _, err := s.trainer(t, Options{}).Train(t.Context(), s.state, batch, run)
	require.ErrorContains(t, err, "sequence 0 has no reference logprobs")
}

// TestGradient_Penalties differentiates the reported sum of loss, penalty and entropy bonus along the gradient, which
// shows that the entropy is that of the model and that its gradient is complete.
func TestGradient_Penalties(t *testing.T) {
	for _, s := range both(t) {
		t.Run(s.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 63))
			batch := []grpo.Sequence{randomSequence(rng, 64, 20), randomSequence(rng, 64, 31)}
			for i := range batch {
				batch[i].Weight = 1
				batch[i].Reference = make([]float32, len(batch[i].IDs))
				for j := range batch[i].Reference {
					batch[i].Reference[j] = -4 - 2*rng.Float32()
				}
			}
			run := Run{Loss: grpo.Penalized{Loss: grpo.SupervisedLoss{}, KL: 0.3, Estimator: credit.K2, Entropy: 5}}
			grads, metrics := gradientOf(t, &s, Options{}, batch, run)
			require.Greater(t, metrics["loss/entropy_full"], 0.5)
			require.LessOrEqual(t, metrics["loss/entropy_full"], math.Log(float64(s.weights.Config.VocabSize))+1e-5)
			length := 0.0
			for _, g := range grads {
				for _, x := range g {
					length += float64(x) * float64(x)
				}
			}
			length = math.Sqrt(length)
			totalAt := func(step float64) float64 {
				moved := s
				moved.state = &State{Names: s.state.Names, Shapes: s.state.Shapes, M: s.state.M, V: s.state.V}
				for i, p := range s.state.Params {
					q := slices.Clone(p)
					for j := range q {
						q[j] += float32(step * float64(grads[i][j]) / length)
					}
					moved.state.Params = append(moved.state.Params, q)
				}
				_, m := gradientOf(t, &moved, Options{}, batch, run)
				return m["loss/total"]
			}
			const h = 5e-3
			want := (totalAt(h) - totalAt(-h)) / (2 * h)
			require.InEpsilon(t, want, length, 5e-3, "seed %d", seed)
		})
	}
}
