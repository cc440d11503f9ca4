//go:build cgo

package xla_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/model"
)

// TestSeveral: each device of a plug-in can be opened by its number, and computes, in place where inputs are donated. A
// training on the second is that on the first to the bit. The plug-in for CPUs has several of one machine.
func TestSeveral(t *testing.T) {
	device(t, configs[0]) // skips where there is no plug-in
	_, err := compute.NewWithConfig("xla:cpu,device=1000")
	require.ErrorContains(t, err, "devices, numbered from 0")
	w := weights(t)["tiny"]
	a := adapter(t, w.Config)
	batch := []grpo.Sequence{{
		IDs: []int32{3, 4, 5, 6, 7}, Trained: []bool{false, true, true, true, true}, Logprobs: make([]float32, 5),
		Advantage: 1, Weight: 1,
	}}
	descriptions := map[string]bool{}
	var want *trainer.State
	for _, name := range []string{"xla:cpu,device=0", "xla:cpu,device=1"} {
		on, err := compute.NewWithConfig(name)
		require.NoError(t, err)
		defer on.Finalize()
		require.Equal(t, 1, on.NumDevices())
		descriptions[on.DeviceDescription(0)] = true

		double, err := graph.NewExec(on, func(x *graph.Node) *graph.Node { return graph.Add(x, x) })
		require.NoError(t, err)
		x := tensors.FromFlatDataAndDimensions([]float32{1, 2, 3}, 3)
		for range 3 {
			donated, err := graph.DonateTensorBuffer(x, on, 0)
			require.NoError(t, err)
			x, err = double.Call1(donated)
			require.NoError(t, err)
		}
		require.Equal(t, []float32{8, 16, 24}, tensors.MustCopyFlatData[float32](x))

		params, err := w.Params(on)
		require.NoError(t, err)
		got, _, err := trainer.New(trainer.AdapterTarget(w.Config, params, a), trainer.Options{Device: on, FewShapes: true}).
			Train(t.Context(), trainer.AdapterState(a), batch, trainer.Run{
				Loss: grpo.SupervisedLoss{}, Optimizer: grpo.DefaultAdamW(), Rate: func(int) float64 { return 1e-3 }, Epochs: 1,
				MiniBatches: 1,
			})
		require.NoError(t, err)
		if want == nil {
			want = got
		}
		require.Equal(t, want, got)
	}
	require.Len(t, descriptions, 2, "they are different devices")
}

// TestSeveral_Replicas: a training whose micro-batches are computed on two devices of the plug-in is that on one, to
// the bit, whichever computes what, and both compute some.
func TestSeveral_Replicas(t *testing.T) {
	device(t, configs[0]) // skips where there is no plug-in
	w := weights(t)["tiny"]
	a := adapter(t, w.Config)
	rng := rand.New(rand.NewPCG(seed, 14))
	batch := make([]grpo.Sequence, 8)
	for i := range batch {
		batch[i] = grpo.Sequence{
			IDs: tokens(rng, w.Config, 5), Trained: []bool{false, true, true, true, true}, Logprobs: make([]float32, 5),
			Advantage: 1, Weight: 1,
		}
	}
	var calls [2]atomic.Int64
	open := func(i int) (compute.Backend, *model.Params) {
		opened, err := compute.NewWithConfig(fmt.Sprintf("xla:cpu,device=%d", i))
		require.NoError(t, err)
		t.Cleanup(opened.Finalize)
		on := graphtest.HookedOn(opened, graphtest.Hooks{Ran: func() { calls[i].Add(1) }})
		params, err := w.Params(on)
		require.NoError(t, err)
		return on, params
	}
	first, params := open(0)
	second, others := open(1)
	train := func(replicas ...trainer.Replica) *trainer.State {
		tr := trainer.New(trainer.AdapterTarget(w.Config, params, a), trainer.Options{
			Device: first, FewShapes: true, Workers: 1, Replicas: replicas,
			Pause: func(context.Context, time.Duration) { time.Sleep(time.Millisecond) }, // the other goes on
		})
		state, _, err := tr.Train(t.Context(), trainer.AdapterState(a), batch, trainer.Run{
			Loss: grpo.SupervisedLoss{}, Optimizer: grpo.DefaultAdamW(), Rate: func(int) float64 { return 1e-3 }, Epochs: 2,
			MiniBatches: 1, MicroBatch: 1,
		})
		require.NoError(t, err)
		return state
	}
	want := train()
	alone := calls[0].Swap(0)
	require.Zero(t, calls[1].Load())
	got := train(trainer.Replica{Device: second, Params: others, Programs: graphx.NewPrograms(second, 1<<28)})
	require.Equal(t, want, got)
	require.Positive(t, calls[1].Load())
	require.Equal(t, alone, calls[0].Load()+calls[1].Load())
}
