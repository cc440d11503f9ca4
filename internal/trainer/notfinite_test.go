package trainer

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
)

// TestTrain_NotFinite: an update whose gradient is not finite is left out, bit for bit as if it had not been.
func TestTrain_NotFinite(t *testing.T) {
	for _, s := range both(t) {
		t.Run(s.name, func(t *testing.T) {
			batch := s.scored(t, randomBatch(rand.New(rand.NewPCG(seed, 30)), 2, 64, 30), func() float32 { return 0 })
			run := plainRun()
			run.Loss, run.MiniBatches = grpo.PolicyLoss{}, 2
			bad := []grpo.Sequence{batch[0], batch[1]}
			bad[1].Advantage = 1e30 // its square is beyond float32
			for i := range s.state.M {
				s.state.M[i][0], s.state.V[i][0] = 0.5, 0.25
			}
			tr := s.trainer(t, Options{})
			want, wantReport, err := tr.Train(context.Background(), s.state, batch[:1], run)
			require.NoError(t, err)
			first := map[bool]bool{}
			for order := range uint64(4) { // the bad one first, and last
				run.Seed = order
				first[credit.Split(inseparable(bad, nil), 2, rand.New(rand.NewPCG(order, 0)))[0][0].Trajectory == 1] = true
				got, report, err := tr.Train(context.Background(), s.state, bad, run)
				require.NoError(t, err)
				require.Equal(t, 1, report.Skipped)
				require.Equal(t, 1, report.Updates)
				require.Equal(t, []int{1}, report.NotFinite, "the trajectory is named")
				require.Empty(t, report.Overflowed)
				require.False(t, math.IsInf(report.Norm, 0) || math.IsNaN(report.Norm))
				sameState(t, want, got)
				require.Equal(t, wantReport.Metrics, report.Metrics)
				require.Equal(t, wantReport.First, report.First)
				require.Equal(t, wantReport.Norm, report.Norm)
				require.Equal(t, wantReport.Change, report.Change, "the probe is of the update that was made")
			}
			require.Len(t, first, 2, "both orders")
		})
	}
}

// TestTrain_NothingFinite: when every update is skipped the state is the old one, and each culprit is named. One finite
// micro-batch makes no update of its own.
func TestTrain_NothingFinite(t *testing.T) {
	for _, miniBatches := range []int{1, 2} {
		for _, s := range both(t) {
			batch := randomBatch(rand.New(rand.NewPCG(seed, 31)), 4, 64, 30)
			run, want := plainRun(), []int{2}
			run.Loss, run.MiniBatches, run.MicroBatch = grpo.PolicyLoss{}, miniBatches, 1
			batch[2].Advantage = 1e30
			if miniBatches == 2 {
				want = []int{0, 1, 2, 3}
				for i := range batch {
					batch[i].Advantage = 1e30
				}
			}
			before := copyOf(s.state)
			got, report, err := s.trainer(t, Options{}).Train(context.Background(), s.state, batch, run)
			require.NoError(t, err, s.name)
			require.Same(t, s.state, got)
			sameState(t, before, s.state)
			require.Equal(t, []int{0, miniBatches}, []int{report.Updates, report.Skipped})
			require.ElementsMatch(t, want, report.NotFinite)
			require.Nil(t, report.Metrics, "of no update")
			require.Zero(t, report.Change.Tokens)
		}
	}
}

// TestTrain_SpoiltState: parameters that are not finite themselves are no state to go on from.
func TestTrain_SpoiltState(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		for _, s := range both(t) {
			batch := randomBatch(rand.New(rand.NewPCG(seed, 31)), 2, 64, 30)
			s.state.Params[3][0] = float32(bad)
			before := copyOf(s.state)
			got, report, err := s.trainer(t, Options{}).Train(context.Background(), s.state, batch, plainRun())
			require.ErrorIs(t, err, ErrDiverged, s.name)
			require.Nil(t, got)
			require.Nil(t, report)
			sameState(t, before, s.state)
		}
	}
}

// TestTrain_SumOverflows: when the gradient of each sequence is finite, and their sum is not, all are named as such.
func TestTrain_SumOverflows(t *testing.T) {
	for _, s := range both(t) {
		one := randomBatch(rand.New(rand.NewPCG(seed, 32)), 1, 64, 30)[0]
		batch := s.scored(t, []grpo.Sequence{one, one}, func() float32 { return 0 })
		batch[1].Trajectory = 1
		batch[0].Advantage, batch[1].Advantage = 1, 1
		run := plainRun()
		run.Loss = grpo.PolicyLoss{}
		tr := s.trainer(t, Options{})
		_, report, err := tr.Train(context.Background(), s.state, batch, run)
		require.NoError(t, err)
		large := 2.4e19 / report.Norm // the norms are 1.2e19 and 2.4e19; the square of 1.8e19 is the limit of float32
		batch[0].Advantage, batch[1].Advantage = large, large
		got, report, err := tr.Train(context.Background(), s.state, batch, run)
		require.NoError(t, err)
		require.Same(t, s.state, got)
		require.Equal(t, 1, report.Skipped)
		require.Empty(t, report.NotFinite, s.name)
		require.Equal(t, []int{0, 1}, report.Overflowed)
	}
}

// endless is the supervised loss, infinitely large, with the same gradient.
type endless struct{ grpo.SupervisedLoss }

func (endless) Spec() grpo.LossSpec {
	spec := grpo.SupervisedLoss{}.Spec()
	spec.Key = "endless"
	return spec
}

func (l endless) Build(in grpo.LossInputs) (*Node, map[string]*Node) {
	loss, metrics := l.SupervisedLoss.Build(in)
	return Add(loss, Infinity(loss.Graph(), loss.DType(), 1)), metrics
}

// TestTrain_LossNotFinite: a loss that is not finite skips the update, though its gradient is; and what was added to
// the gradients before it is dropped with it.
func TestTrain_LossNotFinite(t *testing.T) {
	s := both(t)[1]
	batch := randomBatch(rand.New(rand.NewPCG(seed, 33)), 2, 64, 30)
	run := plainRun()
	run.Loss = endless{}
	tr := s.trainer(t, Options{})
	got, report, err := tr.Train(context.Background(), s.state, batch, run)
	require.NoError(t, err)
	require.Same(t, s.state, got)
	require.Equal(t, []int{0, 1}, report.NotFinite)

	on, err := tr.Start(s.state)
	require.NoError(t, err)
	defer on.Free()
	for _, loss := range []grpo.Loss{grpo.SupervisedLoss{}, endless{}, grpo.SupervisedLoss{}} {
		_, err = on.ForwardBackward(context.Background(), batch, loss)
		require.NoError(t, err)
	}
	norm, ok, err := on.Update(run.Optimizer, 1e-2)
	require.NoError(t, err)
	require.False(t, ok)
	require.True(t, math.IsNaN(norm))
	require.False(t, on.Pending())
	_, err = on.ForwardBackward(context.Background(), batch, grpo.SupervisedLoss{})
	require.NoError(t, err)
	_, ok, err = on.Update(run.Optimizer, 1e-2)
	require.NoError(t, err)
	require.True(t, ok, "nothing is left of it")
}

// TestTrain_PreferenceNotFinite: an update of pairs whose loss is not finite, because of a reference or of the policy,
// is skipped; the others are as if it had not been.
func TestTrain_PreferenceNotFinite(t *testing.T) {
	for _, s := range both(t) {
		batch := randomPairs(t, &s, rand.New(rand.NewPCG(seed, 34)), 2)
		run := plainRun()
		run.Loss, run.MiniBatches = grpo.PreferenceLoss{Preference: credit.Preference{Beta: 0.1}}, 2
		tr := s.trainer(t, Options{})
		want, _, err := tr.Train(context.Background(), s.state, batch[:2], run)
		require.NoError(t, err)
		kept := batch[3].Reference
		batch[3].Reference = slices.Repeat([]float32{float32(math.NaN())}, len(kept))
		for order := range uint64(4) {
			run.Seed = order
			got, report, err := tr.Train(context.Background(), s.state, batch, run)
			require.NoError(t, err)
			sameState(t, want, got)
			require.Equal(t, []int{1, 1}, []int{report.Updates, report.Skipped})
			require.Equal(t, []int{3}, report.NotFinite)
		}
		batch[3].Reference = kept
		for i := range s.state.Params { // finite, and products are not
			for j := range s.state.Params[i] {
				s.state.Params[i][j] = 1e30
			}
		}
		got, report, err := tr.Train(context.Background(), s.state, batch, run)
		require.NoError(t, err)
		require.Same(t, s.state, got)
		require.Equal(t, []int{0, 2}, []int{report.Updates, report.Skipped})
		require.ElementsMatch(t, []int{0, 1, 2, 3}, report.NotFinite)
	}
}

// TestBlamed: the sequence with a logprob that is not finite is named alone, also when its derivative is; and nothing
// when all is finite.
func TestBlamed(t *testing.T) {
	pair := func(chosen, rejected float64) []int {
		batch := make([]grpo.Sequence, 2)
		for i := range batch {
			batch[i] = grpo.Sequence{IDs: []int32{1, 2}, Trained: []bool{false, true}, Reference: []float32{0, -1}}
		}
		logprobs := [][]float32{{float32(math.NaN()), float32(chosen)}, {0, float32(rejected)}}
		linear, value := credit.Preference{Beta: 0.1}.Linearize(batch, logprobs)
		return blamed(linear, value, logprobs)
	}
	require.Empty(t, pair(-1, -2), "the logprob of a token that is not trained does not count")
	require.Equal(t, []int{0}, pair(math.NaN(), -2))
	require.Equal(t, []int{0}, pair(math.Inf(-1), -2), "the loss is infinite, its derivative is not")
	require.Equal(t, []int{0, 1}, pair(math.Inf(-1), math.Inf(-1)))
	steep := []grpo.Sequence{{}, {Advantage: math.Inf(1)}}
	require.Equal(t, []int{1}, blamed(steep, 0, make([][]float32, 2)))
	require.Equal(t, []int{0, 1}, blamed(make([]grpo.Sequence, 2), math.Inf(1), make([][]float32, 2)))
}
