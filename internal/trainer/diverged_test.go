package trainer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// TestTrain_Diverged: a run that ends with logprobs or parameters that are not finite is an error, and so is one whose
// norms overflow, so that logits are 0. What comes after is as if it had not been.
func TestTrain_Diverged(t *testing.T) {
	for _, s := range both(t) {
		for name, change := range map[string]func(run *Run){
			"policy":     func(run *Run) { run.Loss, run.Rate = grpo.PolicyLoss{}, constant(1e19) },
			"supervised": func(run *Run) { run.Rate = constant(1e19) },
			"at the end": func(run *Run) {
				run.Epochs, run.Rate = 2, func(update int) float64 { return math.Pow(10, 21*float64(update)-2) }
			},
			"then skipped": func(run *Run) { run.Epochs, run.MiniBatches, run.Rate = 3, 2, constant(1e19) },
			"parameters":   func(run *Run) { run.Rate = constant(1e45) },
		} {
			t.Run(s.name+"/"+name, func(t *testing.T) {
				batch := s.scored(t, randomBatch(rand.New(rand.NewPCG(seed, 80)), 6, 64, 30), func() float32 { return 0 })
				before, sane := copyOf(s.state), plainRun()
				sane.Rate = constant(1e-3)
				want, _, err := s.trainer(t, Options{}).Train(context.Background(), s.state, batch, sane)
				require.NoError(t, err)

				tr, run := s.trainer(t, Options{}), plainRun()
				change(&run)
				got, report, err := tr.Train(context.Background(), s.state, batch, run)
				require.ErrorIs(t, err, ErrDiverged)
				require.Nil(t, got)
				require.Nil(t, report)
				sameState(t, before, s.state)
				got, _, err = tr.Train(context.Background(), s.state, batch, sane)
				require.NoError(t, err)
				sameState(t, want, got)
			})
		}
	}
}

// TestState_CheckFinite: each kind of number counts, and the message names the tensor.
func TestState_CheckFinite(t *testing.T) {
	s := both(t)[1].state
	require.NoError(t, s.CheckFinite())
	for what, list := range map[string][][]float32{"parameters": s.Params, "first moments": s.M, "second moments": s.V} {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			last := list[len(list)-1]
			kept := last[len(last)-1]
			last[len(last)-1] = float32(bad)
			require.ErrorIs(t, s.CheckFinite(), ErrDiverged)
			require.ErrorContains(t, s.CheckFinite(), "the "+what+" of "+s.Names[len(s.Names)-1])
			last[len(last)-1] = kept
		}
	}
}

// TestProbed_Spread: a few sequences, from all parts of a batch by what they cost, whatever its order.
func TestProbed_Spread(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 81))
	for n, want := range map[int]int{1: 1, 2: 1, 33: 1, 64: 2, 127: 3, 128: 4, 1000: 4} {
		batch := make([]grpo.Sequence, n)
		for i, at := range rng.Perm(n) {
			batch[i] = sequenceOf(at+2, at+1) // lengths 1 to n
		}
		got := pick(batch, probed(batch))
		require.Len(t, got, want)
		for i := range got {
			require.Equal(t, i*n/want, got[i].NumInputs()-1, "%d of %d sequences", i, n)
		}
	}
}

// sequenceOf is a sequence of n tokens that are trained from one on.
func sequenceOf(n, from int) grpo.Sequence {
	s := grpo.Sequence{IDs: make([]int32, n), Trained: make([]bool, n), Logprobs: make([]float32, n)}
	for i := from; i < n; i++ {
		s.Trained[i] = true
	}
	return s
}

// TestProbe_Short: it reads up to the 64th trained token, of the sequence where that comes first, and rather of one
// that has so many.
func TestProbe_Short(t *testing.T) {
	batch := []grpo.Sequence{sequenceOf(900, 800), sequenceOf(2000, 100), sequenceOf(60, 1), sequenceOf(300, 250)}
	logprobs := perToken(batch)
	for i := range logprobs[1] {
		logprobs[1][i] = -float32(i)
	}
	p := newProbe(batch, logprobs)
	require.Len(t, p.sequences, 1)
	require.Equal(t, probeTokens, p.sequences[0].NumTrained())
	require.Equal(t, 100+probeTokens-1, p.sequences[0].NumInputs())
	require.Len(t, p.before[0], probeTokens)
	require.Equal(t, float32(-100), p.before[0][0])
	require.Equal(t, 1900, batch[1].NumTrained(), "the batch is as it was")
}

// TestProbe_Rows: no row of its micro-batches is padding, whether the run bounds their sequences or not.
func TestProbe_Rows(t *testing.T) {
	s := full(t, testConfig())
	tr := s.trainer(t, Options{})
	for _, n := range []int{1, 64, 96, 200} {
		batch := make([]grpo.Sequence, n)
		for i := range batch {
			batch[i] = sequenceOf(100, 10)
			batch[i].IDs[0] = int32(i) // they have nothing in common
		}
		p := newProbe(batch, perToken(batch))
		for _, most := range []int{0, 1} {
			micro, err := tr.microBatches(p.sequences, p.limit(most))
			require.NoError(t, err)
			rows := 0
			for _, m := range micro {
				rows += m.Rows
				require.LessOrEqual(t, m.Rows, cmp.Or(most, n))
			}
			require.Equal(t, len(p.sequences), rows, "%d sequences, at most %d at once", n, most)
		}
	}
}

// TestTrain_Change: it is what the scorer sees, and 0 when nothing moves.
func TestTrain_Change(t *testing.T) {
	for _, s := range both(t) {
		for _, rate := range []float64{0, 1e-3} {
			batch := s.scored(t, randomBatch(rand.New(rand.NewPCG(seed, 82)), 5, 64, 30), func() float32 { return 0 })
			run := plainRun()
			run.Rate, run.Epochs = constant(rate), 2
			state, report, err := s.trainer(t, Options{}).Train(context.Background(), s.state, batch, run)
			require.NoError(t, err)
			one := beginnings(batch)
			before, after := s.scoreAll(t, s.state.Params, one)[0], s.scoreAll(t, state.Params, one)[0]
			var want Difference
			for i, trained := range one[0].Trained {
				if trained {
					want.add(before[i], after[i])
				}
			}
			sameDifference(t, want, report.Change, fmt.Sprintf("%s, rate %v", s.name, rate))
			require.Equal(t, rate > 0, report.Change.Max > graphtest.Rounding())
		}
	}
}

// beginnings are the sequences of the probe of a batch.
func beginnings(batch []grpo.Sequence) []grpo.Sequence {
	return newProbe(batch, perToken(batch)).sequences
}
