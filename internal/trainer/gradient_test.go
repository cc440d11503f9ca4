package trainer

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/plan"
)

// gradientOf computes the gradient of a batch, and the metrics.
func gradientOf(
	t testing.TB, s *subject, opts Options, batch []grpo.Sequence, run Run,
) ([][]float32, map[string]float64) {
	t.Helper()
	on, err := s.trainer(t, opts).Start(s.state)
	require.NoError(t, err)
	defer on.Free()
	weighted, n := averaged(batch)
	p, err := on.accumulate(context.Background(), weighted, lossCall{run.Loss, n, run.MicroBatch})
	require.NoError(t, err)
	require.Empty(t, p.NotFinite)
	return onHost(t, on.grads), p.Metrics
}

// onHost copies gradients to the host.
func onHost(t testing.TB, g gradients) (lists [][]float32) {
	t.Helper()
	for _, x := range g {
		lists = append(lists, tensors.MustCopyFlatData[float32](x))
	}
	return lists
}

// TestGradient_MicroBatchesAddUp: the gradient and the sums of a batch are those of one large micro-batch, however it
// is cut and whoever computes it, but for the rounding of float32 sums. What is compared token by token is equal.
func TestGradient_MicroBatchesAddUp(t *testing.T) {
	for _, s := range both(t) {
		t.Run(s.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 10))
			batch := s.scored(t, randomBatch(rng, 9, 64, 60), func() float32 { return float32(rng.NormFloat64()) * 0.3 })
			run := Run{Loss: grpo.PolicyLoss{}}
			want, metrics := gradientOf(t, &s, Options{Workers: 1, MicroTokens: 1 << 20}, batch, run)
			for _, c := range []struct{ workers, tokens, most int }{{1, 4096, 1}, {2, 4096, 0}, {3, 200, 4}} {
				run.MicroBatch = c.most
				got, gotMetrics := gradientOf(t, &s, Options{Workers: c.workers, MicroTokens: c.tokens}, batch, run)
				difference, length := distance(want, got)
				require.Greater(t, length, 1e-3)
				require.Less(t, difference, 1e-5*length, "%+v, seed %d", c, seed)
				for name, v := range metrics {
					require.InDelta(t, v, gotMetrics[name], 1e-4*math.Abs(v), name)
				}
				require.InDelta(t, metrics["loss/log_ratio_max"], gotMetrics["loss/log_ratio_max"], graphtest.Rounding(), "%+v", c)
				require.Equal(t, metrics["loss/clipped_fraction"], gotMetrics["loss/clipped_fraction"], "%+v", c)
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
			var metrics map[string]float64
			for _, workers := range []int{1, 2, 3} {
				opts := Options{Workers: workers}
				micro, err := s.trainer(t, opts).microBatches(batch, plan.RowStep)
				require.NoError(t, err)
				require.Len(t, micro, 3, "the test wants equal micro-batches")
				grads, got := gradientOf(t, &s, opts, batch, Run{Loss: grpo.PolicyLoss{}, MicroBatch: plan.RowStep})
				if first == nil {
					first, metrics = grads, got
				}
				sameBits(t, first, grads, "workers")
				sameMetrics(t, metrics, got)
			}
		})
	}
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

// TestGradient_MatchesFiniteDifferences along random directions, of a loss that is computed apart from the trainer:
// each sequence alone, in float64 from its logprobs on. That is wrong by 1e-7, which a step of 0.01 makes 1e-5.
func TestGradient_MatchesFiniteDifferences(t *testing.T) {
	for _, s := range both(t) {
		for name, loss := range losses {
			t.Run(s.name+" "+name, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 12))
				batch := randomBatch(rng, 4, 64, 40)
				start := s.scoreAll(t, s.state.Params, batch)
				awayFromKinks(rng, batch, start)
				grads, metrics := gradientOf(t, &s, Options{Workers: 2}, batch, Run{Loss: loss})
				require.InEpsilon(t, loss.plain(batch, start, start), metrics["test/loss"], 1e-5)

				along, want := direction(rng, grads)
				near := func(h float64) float64 {
					params := clone(s.state.Params)
					for i := range params {
						for j := range params[i] {
							params[i][j] += float32(h * along[i][j])
						}
					}
					return loss.plain(batch, s.scoreAll(t, params, batch), start)
				}
				got := fd.Derivative(near, 0, &fd.Settings{Formula: fourPoints})
				require.Greater(t, math.Abs(want), 0.01)
				require.InEpsilon(t, want, got, 0.002, "seed %d", seed)
			})
		}
	}
}

// direction returns a direction of length 1, half random and half that of the gradient, and the slope along it.
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
		tr := New(smallTarget, Options{Device: graphtest.CPU(t), Workers: workers})
		var running, most, calls atomic.Int32
		seen := make([]atomic.Int32, 40)
		require.NoError(t, tr.parallel(context.Background(), 0, len(seen), workers, func(_, i int) error {
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
		err := tr.parallel(context.Background(), 0, 10_000, workers, func(_, i int) error {
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
