package trainer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// TestSession_AddsUp: the gradients of a session are the sums of those of its calls, to the bit, and an update starts
// them anew.
func TestSession_AddsUp(t *testing.T) {
	for _, s := range both(t) {
		t.Run(s.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 95))
			tr := s.trainer(t, Options{Workers: 2})
			alone := func(on *Session, batch []grpo.Sequence) [][]float32 {
				_, err := on.ForwardBackward(t.Context(), batch, grpo.SupervisedLoss{})
				require.NoError(t, err)
				return onHost(t, on.grads)
			}
			var batches [3][]grpo.Sequence
			var want [][]float32
			for i := range batches {
				batches[i] = randomBatch(rng, 3, 64, 40)
				on, err := tr.Start(s.state)
				require.NoError(t, err)
				more := alone(on, batches[i])
				on.Free()
				if want == nil {
					want = more
					continue
				}
				for k := range more {
					for j, x := range more[k] {
						want[k][j] += x
					}
				}
			}
			on, err := tr.Start(s.state)
			require.NoError(t, err)
			defer on.Free()
			for update := range 2 {
				var got [][]float32
				for _, b := range batches {
					got = alone(on, b)
				}
				sameBits(t, want, got, "sum")
				require.True(t, on.Pending())
				_, ok, err := on.Update(plainRun().Optimizer, 0) // the parameters stay
				require.NoError(t, err)
				require.True(t, ok, "update %d", update)
				require.False(t, on.Pending())
			}
		})
	}
}

// TestSum_InPlace: a sum is written over what it is added to. XLA copies once what the host has uploaded, and may swap
// tensors of one size.
func TestSum_InPlace(t *testing.T) {
	device := graphtest.Device(t)
	if !device.HasSharedBuffers() {
		t.Skip("the host does not see the memory of this device")
	}
	stays := device == graphtest.CPU(t)
	s := both(t)[0]
	tr := s.trainer(t, Options{})
	at := func(g gradients) (list []string) {
		for _, x := range g {
			require.NoError(t, tensors.ConstFlatData(x, func(values []float32) {
				list = append(list, fmt.Sprintf("%d numbers at %p", len(values), &values[0]))
			}))
		}
		if !stays {
			slices.Sort(list)
		}
		return list
	}
	upload := func() gradients {
		list, err := tr.upload(s.state, s.state.Params)
		require.NoError(t, err)
		return list
	}
	sum := upload()
	before := at(sum)
	for i := range 3 {
		var err error
		sum, err = tr.sum(sum, upload())
		require.NoError(t, err)
		if i == 0 && !stays {
			before = at(sum)
		}
		require.Equal(t, before, at(sum))
	}
	defer sum.free()
	want := clone(s.state.Params)
	for _, list := range want {
		for i, x := range list {
			list[i] = ((x + x) + x) + x
		}
	}
	sameBits(t, want, onHost(t, sum), "sum of four")
}

// TestSession_DeviceFails: when the device fails before gradients are added to those that there are, nothing has
// changed; when it fails at that, the state is lost, and says so.
func TestSession_DeviceFails(t *testing.T) {
	broken := errors.New("broken")
	var calls, failing atomic.Int64
	device := graphtest.Hooked(t, graphtest.Hooks{Run: func() error {
		if calls.Add(1) == failing.Load() {
			return broken
		}
		return nil
	}})
	tr, state := trainerOn(t, device)
	batch := randomBatch(rand.New(rand.NewPCG(seed, 96)), 1, 64, 30)
	start := func() *Session {
		on, err := tr.Start(state)
		require.NoError(t, err)
		failing.Store(0)
		_, err = on.ForwardBackward(t.Context(), batch, grpo.SupervisedLoss{})
		require.NoError(t, err)
		calls.Store(0)
		return on
	}
	on := start()
	_, err := on.ForwardBackward(t.Context(), batch, grpo.SupervisedLoss{})
	require.NoError(t, err)
	n := calls.Load()
	on.Free()
	require.GreaterOrEqual(t, n, int64(3), "the graph, the norm, the sum")
	for call := int64(1); call <= n; call++ {
		on := start()
		before := onHost(t, on.grads)
		failing.Store(call)
		_, err := on.ForwardBackward(t.Context(), batch, grpo.SupervisedLoss{})
		require.ErrorIs(t, err, broken)
		if call < n {
			require.NotErrorIs(t, err, ErrLost)
			sameBits(t, before, onHost(t, on.grads), "gradients after a failure")
		} else {
			require.ErrorIs(t, err, ErrLost)
			_, err = on.State()
			require.ErrorIs(t, err, ErrLost)
		}
		on.Free()
	}
}
