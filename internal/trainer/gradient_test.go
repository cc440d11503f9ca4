package trainer

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"

	"github.com/goart-dev/art/grpo"
)

// gradientOf computes the gradient of a batch, and the rows and columns that it took.
func gradientOf(t testing.TB, s *subject, opts Options, batch []grpo.Sequence, run Run) ([][]float32, grpo.LossSums) {
	t.Helper()
	tr := s.trainer(t, opts)
	on, err := tr.reside(s.state)
	require.NoError(t, err)
	defer on.free()
	grads, sums, err := tr.gradient(context.Background(), on.params, batch, &run, &Report{})
	require.NoError(t, err)
	return grads, sums
}

// TestGradient_MicroBatchesAddUp: the gradient and the sums of a batch are those of one large micro-batch, however it is
// cut and whoever computes it, but for the rounding of float32 sums. What is compared token by token is equal.
func TestGradient_MicroBatchesAddUp(t *testing.T) {
	for _, s := range both(t) {
		t.Run(s.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 10))
			batch := s.scored(t, randomBatch(rng, 9, 64, 60), func() float32 { return float32(rng.NormFloat64()) * 0.3 })
			want, sums := gradientOf(t, &s, Options{Workers: 1, MicroTokens: 1 << 20}, batch, Run{})
			for _, c := range []struct{ workers, tokens, most int }{{1, 4096, 1}, {2, 4096, 0}, {3, 200, 4}} {
				got, gotSums := gradientOf(t, &s, Options{Workers: c.workers, MicroTokens: c.tokens}, batch, Run{MicroBatch: c.most})
				difference, length := distance(want, got)
				require.Greater(t, length, 1e-3)
				require.Less(t, difference, 1e-5*length, "%+v, seed %d", c, seed)
				require.Equal(t, sums.GapMax, gotSums.GapMax, "%+v", c)
				require.Equal(t, sums.Tokens, gotSums.Tokens)
				require.Equal(t, sums.Clipped, gotSums.Clipped)
				require.InEpsilon(t, sums.Loss, gotSums.Loss, 1e-4)
				require.InEpsilon(t, sums.Entropy, gotSums.Entropy, 1e-5)
				require.InEpsilon(t, sums.KL, gotSums.KL, 1e-5)
			}
		})
	}
}

// TestGradient_SameBitsForAnyWorkers: of equal micro-batches the gradient has the same bits, whoever computes them and
// whichever is done first.
func TestGradient_SameBitsForAnyWorkers(t *testing.T) {
	for _, s := range both(t) {
		t.Run(s.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 11))
			batch := s.scored(t, randomBatch(rng, 10, 64, 45), func() float32 { return float32(rng.NormFloat64()) * 0.3 })
			var first [][]float32
			var sums grpo.LossSums
			for _, workers := range []int{1, 2, 3} {
				opts := Options{Workers: workers}
				micro, err := s.trainer(t, opts).pack(batch, rowStep)
				require.NoError(t, err)
				require.Len(t, micro, 3, "the test wants equal micro-batches")
				grads, got := gradientOf(t, &s, opts, batch, Run{MicroBatch: rowStep})
				if first == nil {
					first, sums = grads, got
				}
				sameBits(t, first, grads, "workers")
				require.Equal(t, sums, got)
			}
		})
	}
}

// plainLoss is the loss of a batch in float64, from logprobs of package model. frozen are those that CISPO makes its
// weights of: it is not differentiated through them.
func plainLoss(run Run, batch []grpo.Sequence, logprobs, frozen [][]float32) float64 {
	lo, hi := run.Loss.Bounds()
	sum := 0.0
	for i, s := range batch {
		for j, trained := range s.Trained {
			if !trained {
				continue
			}
			lp := float64(logprobs[i][j])
			ratio := math.Exp(lp - float64(s.Logprobs[j]))
			switch {
			case run.Supervised:
				sum -= s.Weight * lp
			case run.Loss.Loss == grpo.LossPPO:
				sum -= s.Weight * min(ratio*s.Advantage, max(lo, min(hi, ratio))*s.Advantage)
			default:
				ratio = math.Exp(float64(frozen[i][j]) - float64(s.Logprobs[j]))
				sum -= s.Weight * max(lo, min(hi, ratio)) * s.Advantage * lp
			}
		}
	}
	return sum / float64(grpo.NumTrained(batch))
}

// scoreAll scores every sequence with the given parameters.
func (s *subject) scoreAll(t testing.TB, params [][]float32, batch []grpo.Sequence) [][]float32 {
	t.Helper()
	out := make([][]float32, len(batch))
	for i := range batch {
		out[i] = s.score(t, params, batch[i].IDs)
	}
	return out
}

// awayFromKinks moves old logprobs so that no ratio lies where a clipped loss has a corner.
func awayFromKinks(rng *rand.Rand, batch []grpo.Sequence, logprobs [][]float32) {
	for i := range batch {
		for j := range batch[i].Logprobs {
			gap := []float32{-0.6, -0.1, 0.05, 0.1, 0.5, 2}[rng.IntN(6)]
			if logprobs[i][j]-gap > 0 { // no logprob
				gap = 0.05
			}
			batch[i].Logprobs[j] = logprobs[i][j] - gap
		}
	}
}

// objectives are the losses of a run.
var objectives = map[string]Run{
	"supervised": {Supervised: true},
	"ppo":        {Loss: grpo.LossConfig{Loss: grpo.LossPPO}},
	"cispo":      {Loss: grpo.LossConfig{Loss: grpo.LossCISPO, EpsilonHigh: ptr(0.4)}},
}

func ptr(x float64) *float64 { return &x }

// TestGradient_MatchesFiniteDifferences along random directions, of a loss that is computed apart from the trainer: each
// sequence alone, in float64 from its logprobs on. That is wrong by 1e-7,
// which a step of 0.01 makes 1e-5.
func TestGradient_MatchesFiniteDifferences(t *testing.T) {
	for _, s := range both(t) {
		for name, run := range objectives {
			t.Run(s.name+" "+name, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 12))
				batch := randomBatch(rng, 4, 64, 40)
				start := s.scoreAll(t, s.state.Params, batch)
				awayFromKinks(rng, batch, start)
				grads, sums := gradientOf(t, &s, Options{Workers: 2}, batch, run)
				require.InEpsilon(t, plainLoss(run, batch, start, start), sums.Loss, 1e-5)

				along, want := direction(rng, grads)
				near := func(h float64) float64 {
					params := clone(s.state.Params)
					for i := range params {
						for j := range params[i] {
							params[i][j] += float32(h * along[i][j])
						}
					}
					return plainLoss(run, batch, s.scoreAll(t, params, batch), start)
				}
				got := fd.Derivative(near, 0, &fd.Settings{Formula: fourPoints})
				require.Greater(t, math.Abs(want), 0.01)
				require.InEpsilon(t, want, got, 0.002, "seed %d", seed)
			})
		}
	}
}

// direction returns a direction of length 1, half random and half that of the gradient, and the gradient's share in it.
func direction(rng *rand.Rand, grads [][]float32) (along [][]float64, slope float64) {
	var random, steep, length float64
	each := func(f func(i, j int)) {
		for i := range grads {
			for j := range grads[i] {
				f(i, j)
			}
		}
	}
	for _, g := range grads {
		along = append(along, make([]float64, len(g)))
	}
	each(func(i, j int) {
		along[i][j] = rng.NormFloat64()
		random += along[i][j] * along[i][j]
		steep += float64(grads[i][j]) * float64(grads[i][j])
	})
	each(func(i, j int) {
		along[i][j] = along[i][j]/math.Sqrt(random) + float64(grads[i][j])/math.Sqrt(steep)
		length += along[i][j] * along[i][j]
	})
	each(func(i, j int) {
		along[i][j] /= math.Sqrt(length)
		slope += along[i][j] * float64(grads[i][j])
	})
	return along, slope
}

// TestEach_CallsAllOrStops: every index once; at most as many at a time as there are workers; the first error ends it.
func TestEach_CallsAllOrStops(t *testing.T) {
	for _, workers := range []int{1, 3, 50} {
		tr := New(smallTarget, Options{Workers: workers})
		var running, most, calls atomic.Int32
		seen := make([]atomic.Int32, 40)
		require.NoError(t, tr.each(context.Background(), len(seen), func(i int) error {
			most.Store(max(most.Load(), running.Add(1)))
			seen[i].Add(1)
			running.Add(-1)
			return nil
		}))
		for i := range seen {
			require.EqualValues(t, 1, seen[i].Load(), "index %d", i)
		}
		require.LessOrEqual(t, int(most.Load()), workers)

		bad := errors.New("bad")
		err := tr.each(context.Background(), 10_000, func(i int) error {
			calls.Add(1)
			if i == 5 {
				return bad
			}
			time.Sleep(time.Millisecond) // else all could be called before the one that fails has said so
			return nil
		})
		require.ErrorIs(t, err, bad)
		require.ErrorContains(t, err, "trainer: ")
		require.Less(t, int(calls.Load()), 10_000)
	}
}
