//go:build cgo

package xla_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/trainer"
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
