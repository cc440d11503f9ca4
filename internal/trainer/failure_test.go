package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/lora"
)

func TestTrain_Refuses(t *testing.T) {
	s := both(t)[1]
	tr := s.trainer(t, Options{})
	batch := randomBatch(rand.New(rand.NewPCG(seed, 32)), 2, 64, 30)
	train := func(batch []grpo.Sequence, change func(run *Run)) error {
		run := plainRun()
		change(&run)
		before := copyOf(s.state)
		state, _, err := tr.Train(context.Background(), s.state, batch, run)
		require.Nil(t, state)
		sameState(t, before, s.state)
		return err
	}
	require.ErrorContains(t, train(nil, func(*Run) {}), "the batch has no sequences")
	require.ErrorContains(t, train(batch, func(r *Run) { r.Loss = nil }), "the run has no loss")
	require.ErrorContains(t, train(batch, func(r *Run) { r.Loss = grpo.PolicyLoss{Loss: "dpo"} }), `unknown loss "dpo"`)
	require.ErrorContains(t, train(batch, func(r *Run) { r.Optimizer.Eps = 0 }), "eps is 0")
	untrained := grpo.Sequence{IDs: []int32{1, 2}, Trained: []bool{false, false}, Logprobs: []float32{0, 0}}
	require.ErrorContains(t, train([]grpo.Sequence{untrained}, func(*Run) {}), "no trained token")
	require.ErrorContains(t, train(append(batch, randomSequenceOf(130)), func(*Run) {}),
		"sequence 2 needs 129 tokens, the model knows 128 positions")
	for _, id := range []int32{-1, 64, 1 << 30} { // the device ends the process at such a token
		strange := randomSequenceOf(20)
		strange.IDs[7] = id
		require.ErrorContains(t, train([]grpo.Sequence{strange}, func(*Run) {}),
			fmt.Sprintf("sequence 0 has id %d at 7, the vocabulary has 64", id))
	}
	for _, change := range []func(*Run){
		func(r *Run) { r.Epochs = 0 }, func(r *Run) { r.MiniBatches = 0 }, func(r *Run) { r.MiniBatches = -1 },
		func(r *Run) { r.Rate = nil },
	} {
		require.ErrorContains(t, train(batch, change), "want at least one of each, and a learning rate")
	}
}

// randomSequenceOf has n tokens.
func randomSequenceOf(n int) grpo.Sequence {
	s := grpo.Sequence{IDs: make([]int32, n), Trained: make([]bool, n), Logprobs: make([]float32, n), Weight: 1}
	s.Trained[n-1] = true
	return s
}

// TestTrain_Cancelled: a run that would take minutes ends soon after its context, with the cause, and changes nothing.
func TestTrain_Cancelled(t *testing.T) {
	s := both(t)[0]
	batch := randomBatch(rand.New(rand.NewPCG(seed, 33)), 400, 64, 120)
	cause := errors.New("enough")
	for name, change := range map[string]func(run *Run, stop func()){
		"before":       func(_ *Run, stop func()) { stop() },
		"in an update": func(run *Run, stop func()) { run.MicroBatch = 1; time.AfterFunc(100*time.Millisecond, stop) },
		"between updates": func(run *Run, stop func()) {
			run.MiniBatches = 400
			run.Progress = func(int, Report) { stop() }
		},
		"with large batches": func(_ *Run, stop func()) { time.AfterFunc(100*time.Millisecond, stop) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			run := plainRun()
			run.Epochs = 1000
			change(&run, func() { cancel(cause) })
			before, began := copyOf(s.state), time.Now()
			state, report, err := s.trainer(t, Options{}).Train(ctx, s.state, batch, run)
			require.ErrorIs(t, err, cause)
			require.Nil(t, state)
			require.Nil(t, report)
			sameState(t, before, s.state)
			require.Less(t, time.Since(began), 20*time.Second)
		})
	}
}

// TestTrain_DeviceFails: whichever call of the device fails, and whether those after it do too, the run ends with that
// error and the state is as it was, or ends as it would have without. The next run does.
func TestTrain_DeviceFails(t *testing.T) {
	broken := errors.New("broken")
	for name, hook := range map[string]func(f func() error) graphtest.Hooks{
		"run":      func(f func() error) graphtest.Hooks { return graphtest.Hooks{Run: f} },
		"read":     func(f func() error) graphtest.Hooks { return graphtest.Hooks{Read: f} },
		"finalize": func(f func() error) graphtest.Hooks { return graphtest.Hooks{Finalize: f} },
	} {
		t.Run(name, func(t *testing.T) {
			var calls, first, last atomic.Int64 // those from first to last fail
			device := graphtest.Hooked(t, hook(func() error {
				if n := calls.Add(1); first.Load() <= n && n <= last.Load() {
					return broken
				}
				return nil
			}))
			tr, s := trainerOn(t, device)
			batch := randomBatch(rand.New(rand.NewPCG(seed, 34)), 4, 64, 30)
			run := plainRun()
			run.MiniBatches = 2
			train := func(from, to int64) (*State, error) {
				calls.Store(0)
				first.Store(from)
				last.Store(to)
				before := copyOf(s)
				got, _, err := tr.Train(context.Background(), s, batch, run)
				sameState(t, before, s)
				return got, err
			}
			want, err := train(0, 0)
			require.NoError(t, err)
			n := calls.Load()
			require.Positive(t, n)
			for from := range n {
				for _, to := range []int64{from + 1, math.MaxInt64} {
					got, err := train(from+1, to)
					if name == "finalize" && err == nil {
						sameState(t, want, got)
					} else {
						require.ErrorIs(t, err, broken, "call %d of %d", from+1, n)
					}
					got, err = train(0, 0)
					require.NoError(t, err)
					sameState(t, want, got)
				}
			}
		})
	}
}

// TestTrain_FailureFrees: whichever run of a graph fails, what the device holds for the training is freed: the garbage
// collector knows nothing of the memory of a GPU.
func TestTrain_FailureFrees(t *testing.T) {
	broken := errors.New("broken")
	var calls, fails, bytes atomic.Int64
	device := graphtest.Hooked(t, graphtest.Hooks{Bytes: &bytes, Run: func() error {
		if calls.Add(1) == fails.Load() {
			return broken
		}
		return nil
	}})
	tr, s := trainerOn(t, device)
	tr.sizes.Workers = 1
	run := plainRun()
	run.MiniBatches, run.MicroBatch = 2, 1
	batch := randomBatch(rand.New(rand.NewPCG(seed, 34)), 4, 64, 30)
	train := func(call int64) error {
		calls.Store(0)
		fails.Store(call)
		_, _, err := tr.Train(context.Background(), s, batch, run)
		return err
	}
	require.NoError(t, train(0))
	n, held := calls.Load(), bytes.Load()
	require.NoError(t, train(0))
	require.Equal(t, held, bytes.Load())
	for call := int64(1); call <= n; call++ {
		require.ErrorIs(t, train(call), broken)
		require.Equal(t, held, bytes.Load(), "call %d of %d", call, n)
	}
}

// trainerOn returns a trainer of a small adapter on a device, and a state.
func trainerOn(t testing.TB, device compute.Backend) (*Trainer, *State) {
	t.Helper()
	c := testConfig()
	params, err := testWeights(t, c).Params(device)
	require.NoError(t, err)
	a := testAdapter(t, lora.Config{Rank: 2, Targets: []string{"v_proj"}}, c, false)
	return New(AdapterTarget(c, params, a), Options{Device: device, Workers: 2}), AdapterState(a)
}
