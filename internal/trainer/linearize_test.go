package trainer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
)

// plainPreference is the loss of DPO in float64, written apart from package grpo.
func plainPreference(l grpo.PreferenceLoss, batch []grpo.Sequence, logprobs [][]float32) float64 {
	sum := 0.0
	for i := 0; i < len(batch); i += 2 {
		var r [2]float64
		for k := range r {
			s := batch[i+k]
			for j, trained := range s.Trained {
				if trained {
					r[k] += l.Beta * (float64(logprobs[i+k][j]) - float64(s.Reference[j]))
				}
			}
			if l.Mean {
				r[k] /= float64(s.NumTrained())
			}
		}
		p := 1 / (1 + math.Exp(r[1]-r[0]))
		sum -= (1-l.Smoothing)*math.Log(p) + l.Smoothing*math.Log(1-p)
	}
	return sum / float64(len(batch)/2)
}

// randomPairs returns pairs whose reference is a random distance from the policy of s.
func randomPairs(t *testing.T, s *subject, rng *rand.Rand, n int) []grpo.Sequence {
	batch := randomBatch(rng, 2*n, 64, 40)
	for i, logprobs := range s.scoreAll(t, s.state.Params, batch) {
		batch[i].Trajectory, batch[i].Reference = i, slices.Clone(logprobs)
		for j := range logprobs {
			batch[i].Reference[j] = min(0, logprobs[j]+0.3*float32(rng.NormFloat64()))
		}
	}
	return batch
}

// TestLinearize_MatchesFiniteDifferences: the gradient of the linear function is that of the loss, however pairs are
// cut into micro-batches, and the value is the loss.
func TestLinearize_MatchesFiniteDifferences(t *testing.T) {
	for _, s := range both(t) {
		for name, loss := range map[string]grpo.PreferenceLoss{
			"plain":  {Preference: credit.Preference{Beta: 0.3}},
			"smooth": {Preference: credit.Preference{Beta: 0.5, Smoothing: 0.2}},
			"mean":   {Preference: credit.Preference{Beta: 5, Mean: true}},
		} {
			t.Run(s.name+" "+name, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 90))
				batch := randomPairs(t, &s, rng, 3)
				tr := s.trainer(t, Options{Workers: 2})
				on, err := tr.Start(s.state)
				require.NoError(t, err)
				defer on.Free()
				run := newTraining(on, Run{Loss: loss, MicroBatch: 1})
				linear, value, notFinite, err := run.linearize(t.Context(), batch)
				require.NoError(t, err)
				require.Empty(t, notFinite)
				start := s.scoreAll(t, s.state.Params, batch)
				require.InEpsilon(t, plainPreference(loss, batch, start), value, 1e-5)
				weighted, n := averaged(linear)
				_, err = on.accumulate(t.Context(), weighted, lossCall{loss, n, 1})
				require.NoError(t, err)
				grads := onHost(t, on.grads)

				along, want := direction(rng, grads)
				got := fd.Derivative(func(h float64) float64 {
					params := clone(s.state.Params)
					for i := range params {
						for j := range params[i] {
							params[i][j] += float32(h * along[i][j])
						}
					}
					return plainPreference(loss, batch, s.scoreAll(t, params, batch))
				}, 0, &fd.Settings{Formula: fourPoints})
				require.Greater(t, math.Abs(want), 0.01)
				require.InEpsilon(t, want, got, 0.002, "seed %d", seed)
			})
		}
	}
}

// TestTrain_PairsStayTogether: a pair is never cut by mini-batches, so each value is that of whole pairs.
func TestTrain_PairsStayTogether(t *testing.T) {
	s := both(t)[0]
	batch := randomPairs(t, &s, rand.New(rand.NewPCG(seed, 91)), 5)
	run := plainRun()
	run.Loss, run.MiniBatches, run.Rate = grpo.PreferenceLoss{Preference: credit.Preference{Beta: 0.1}}, 5, constant(0)
	steps := 0
	run.Progress = func(total int, _ Report) {
		steps++
		require.Equal(t, 5, total)
	}
	_, report, err := s.trainer(t, Options{}).Train(t.Context(), s.state, batch, run)
	require.NoError(t, err)
	require.Equal(t, 5, steps)
	loss := grpo.PreferenceLoss{Preference: credit.Preference{Beta: 0.1}}
	want := plainPreference(loss, batch, s.scoreAll(t, s.state.Params, batch))
	require.InDelta(t, want, report.Metrics["loss/dpo"], 1e-5, "nothing moves, so the mean over updates is the batch's")

	_, _, err = s.trainer(t, Options{}).Train(t.Context(), s.state, batch[:3], run)
	require.ErrorContains(t, err, "3 sequences, the loss takes 2 together")
	batch[1].Reference = nil
	_, _, err = s.trainer(t, Options{}).Train(t.Context(), s.state, batch, run)
	require.ErrorContains(t, err, "sequence 1 has no reference logprobs")
}
