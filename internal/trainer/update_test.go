package trainer

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/lora"
)

// fourPoints is the difference formula with an error of h⁴: float32 losses allow no small steps.
var fourPoints = fd.Formula{
	Stencil: []fd.Point{{Loc: -2, Coeff: 1.0 / 12}, {Loc: -1, Coeff: -8.0 / 12}, {Loc: 1, Coeff: 8.0 / 12},
		{Loc: 2, Coeff: -1.0 / 12}},
	Derivative: 1, Step: 0.01,
}

// plainState is parameters and both moments, which an update overwrites.
type plainState struct{ p, m, v []float64 }

// handAdamW is one update by the formulas of the paper (Loshchilov and Hutter 2019) in float64: p, m and v after step
// t.
func handAdamW(c grpo.AdamW, s plainState, g []float64, t int, rate float64) {
	p, m, v := s.p, s.m, s.v
	norm := 0.0
	for _, x := range g {
		norm = math.Hypot(norm, x)
	}
	clip := 1.0
	if c.MaxGradNorm > 0 {
		clip = min(1, c.MaxGradNorm/norm)
	}
	for i := range p {
		m[i] = c.Beta1*m[i] + (1-c.Beta1)*clip*g[i]
		v[i] = c.Beta2*v[i] + (1-c.Beta2)*clip*g[i]*clip*g[i]
		step := m[i] / (1 - math.Pow(c.Beta1, float64(t))) / (math.Sqrt(v[i]/(1-math.Pow(c.Beta2, float64(t)))) + c.Eps)
		p[i] -= rate * (step + c.WeightDecay*p[i])
	}
}

// TestTrain_UpdateByHand follows a whole update of a model with 64 trained numbers: the loss apart from the trainer,
// its gradient by finite differences, AdamW by hand, from moments that are not zero.
//
// The loss is wrong by 1e-7, so differences over a step of 0.01 are by 1e-5; a large Eps keeps AdamW from blowing that
// up where a gradient is small.
func TestTrain_UpdateByHand(t *testing.T) {
	for name, loss := range losses {
		t.Run(name, func(t *testing.T) {
			c := testConfig()
			s := adapted(t, c, testAdapter(t, lora.Config{Rank: 1, Alpha: 2, Targets: []string{"v_proj"}}, c, false))
			rng := rand.New(rand.NewPCG(seed, 20))
			s.state.Updates = 3
			var p, m, v []float64
			for i := range s.state.Params {
				for j := range s.state.Params[i] {
					s.state.M[i][j], s.state.V[i][j] = float32(rng.NormFloat64()*0.02), float32(rng.Float64()*0.001)
					p = append(p, float64(s.state.Params[i][j]))
					m, v = append(m, float64(s.state.M[i][j])), append(v, float64(s.state.V[i][j]))
				}
			}
			require.Len(t, p, 64)
			batch := []grpo.Sequence{randomSequence(rng, 64, 45)}
			for i := range batch[0].Trained { // with many tokens none of the losses clips them all
				batch[0].Trained[i] = i > 0
			}
			start := s.scoreAll(t, s.state.Params, batch)
			awayFromKinks(rng, batch, start)

			at := func(p []float64) float64 {
				params := clone(s.state.Params)
				for i, k := 0, 0; i < len(params); i++ {
					for j := range params[i] {
						params[i][j] = float32(p[k])
						k++
					}
				}
				return loss.plain(batch, s.scoreAll(t, params, batch), start)
			}
			g := fd.Gradient(nil, at, p, &fd.Settings{Formula: fourPoints})
			norm := 0.0
			for _, x := range g {
				norm = math.Hypot(norm, x)
			}
			run := Run{Loss: loss}
			run.Optimizer = grpo.AdamW{Beta1: 0.8, Beta2: 0.95, Eps: 0.05, WeightDecay: 0.1, MaxGradNorm: norm / 2}
			run.Rate, run.Epochs, run.MiniBatches = constant(0.1), 1, 1
			before := append([]float64{}, p...)
			handAdamW(run.Optimizer, plainState{p, m, v}, g, 4, 0.1)

			state, report, err := s.trainer(t, Options{Workers: 2}).Train(context.Background(), s.state, batch, run)
			require.NoError(t, err)
			require.Equal(t, 4, state.Updates)
			require.InEpsilon(t, norm, report.Norm, 1e-3)
			var worst, furthest float64
			for i, k := 0, 0; i < len(state.Params); i++ {
				for j := range state.Params[i] {
					worst = max(worst, math.Abs(p[k]-float64(state.Params[i][j])))
					require.InDelta(t, p[k], state.Params[i][j], 5e-5, "seed %d, parameter %d, gradient %v", seed, k, g[k])
					require.InDelta(t, m[k], state.M[i][j], 5e-5)
					require.InDelta(t, v[k], state.V[i][j], 1e-6+1e-3*v[k])
					furthest = max(furthest, math.Abs(p[k]-before[k]))
					k++
				}
			}
			t.Logf("moves of up to %.3f, wrong by %.1g", furthest, worst)
			require.Greater(t, furthest, 0.01, "the update is too small to show")
		})
	}
}

// TestTrain_RatesAndProgress: Rate is called with the number of each update, and Progress after it.
func TestTrain_RatesAndProgress(t *testing.T) {
	s := both(t)[1]
	var rates, done []int
	run := plainRun()
	run.Epochs, run.MiniBatches = 2, 3
	run.Rate = func(update int) float64 {
		rates = append(rates, update)
		return 1e-3
	}
	run.Progress = func(total int, soFar Report) {
		require.Equal(t, 6, total)
		require.Positive(t, soFar.Norm)
		require.Positive(t, soFar.Metrics["loss/sft"])
		done = append(done, soFar.Updates)
	}
	batch := randomBatch(rand.New(rand.NewPCG(seed, 21)), 7, 64, 30)
	state, report, err := s.trainer(t, Options{}).Train(context.Background(), s.state, batch, run)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2, 3, 4, 5}, rates)
	require.Equal(t, []int{1, 2, 3, 4, 5, 6}, done)
	require.Equal(t, 6, state.Updates)
	require.Equal(t, 6, report.Updates)
	require.Zero(t, report.Skipped)
	require.NotEqual(t, report.First, report.Metrics)
	require.GreaterOrEqual(t, report.Computed, 2*7*32)
}

// TestTrain_MoreMiniBatchesThanSequences makes one update for each sequence.
func TestTrain_MoreMiniBatchesThanSequences(t *testing.T) {
	s := both(t)[1]
	run := plainRun()
	run.MiniBatches = 10
	batch := randomBatch(rand.New(rand.NewPCG(seed, 22)), 3, 64, 30)
	state, _, err := s.trainer(t, Options{}).Train(context.Background(), s.state, batch, run)
	require.NoError(t, err)
	require.Equal(t, 3, state.Updates)
}

// TestTrain_Repeats: the new state is a function of the old one, the batch and the run, and the old one stays as it is.
func TestTrain_Repeats(t *testing.T) {
	for _, s := range both(t) {
		t.Run(s.name, func(t *testing.T) {
			run := plainRun()
			run.Epochs, run.MiniBatches, run.Seed = 2, 2, 5
			batch := randomBatch(rand.New(rand.NewPCG(seed, 23)), 5, 64, 40)
			before := copyOf(s.state)
			tr := s.trainer(t, Options{Workers: 2})
			first, report, err := tr.Train(context.Background(), s.state, batch, run)
			require.NoError(t, err)
			sameState(t, before, s.state)
			require.NotEqual(t, before.Params, first.Params)

			_, _, err = tr.Train(context.Background(), first, batch, run) // what a trainer did before does not matter
			require.NoError(t, err)
			again, sameReport, err := tr.Train(context.Background(), s.state, batch, run)
			require.NoError(t, err)
			sameState(t, first, again)
			require.Equal(t, report, sameReport)

			run.Seed = 6
			other, _, err := tr.Train(context.Background(), s.state, batch, run)
			require.NoError(t, err)
			require.NotEqual(t, first.Params, other.Params, "the seed orders the sequences")
		})
	}
}

// TestState_Clone shares nothing.
func TestState_Clone(t *testing.T) {
	s := both(t)[1].state
	s.Updates = 2
	c := copyOf(s)
	sameState(t, s, c)
	c.Params[0][0]++
	c.M[1][0]++
	c.V[2][0]++
	c.Updates++
	c.Names[0] = "x"
	require.NotEqual(t, s.Params[0][0], c.Params[0][0])
	require.NotEqual(t, s.M[1][0], c.M[1][0])
	require.NotEqual(t, s.V[2][0], c.V[2][0])
	require.NotEqual(t, s.Names[0], c.Names[0])
}

// TestFullState_LeavesWeightsAlone: training does not write into the weights that it began with.
func TestFullState_LeavesWeightsAlone(t *testing.T) {
	s := full(t, testConfig())
	before := s.weights.Tensors[0].Data[0]
	s.state.Params[0][0] += 5
	require.Equal(t, before, s.weights.Tensors[0].Data[0])
}

// TestApply_InPlace: new parameters and moments are written over the old ones, whether the gradient is finite or not.
// On the CPU device each stays where it is. XLA copies once what the host has uploaded, and may swap lists of one size.
func TestApply_InPlace(t *testing.T) {
	device := graphtest.Device(t)
	if !device.HasSharedBuffers() {
		t.Skip("the host does not see the memory of this device")
	}
	stays := device == graphtest.CPU(t)
	for _, s := range both(t) {
		tr := s.trainer(t, Options{})
		on, err := tr.toDevice(s.state)
		require.NoError(t, err)
		defer on.free()
		memory := func() (list []string) {
			for _, x := range on.all() {
				require.NoError(t, tensors.ConstFlatData(x, func(values []float32) {
					list = append(list, fmt.Sprintf("%d numbers at %p", len(values), &values[0]))
				}))
			}
			if !stays {
				slices.Sort(list)
			}
			return list
		}
		before, grads := memory(), clone(s.state.Params)
		for i, finite := range []bool{true, true, false} {
			if !finite {
				grads[0][0] = float32(math.NaN())
			}
			uploaded, err := tr.upload(s.state, grads)
			require.NoError(t, err)
			defer finalize(uploaded)
			_, ok, err := tr.apply(on, uploaded, plainRun().Optimizer, 1e-3)
			require.NoError(t, err)
			require.Equal(t, finite, ok)
			if i == 0 && !stays {
				before = memory()
			}
			require.Equal(t, before, memory(), "%s: update %d", s.name, i)
		}
	}
}
