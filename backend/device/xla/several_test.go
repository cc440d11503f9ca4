//go:build cgo

package xla_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/trainer"
)

// severalEnv is set in the process in which XLA has two devices on this CPU: it reads its flags once.
const severalEnv = "ART_TEST_TWO_DEVICES"

// TestSeveral: each device of a plug-in can be opened by its number, and computes, in place where inputs are donated. A
// training on the second is that on the first to the bit.
func TestSeveral(t *testing.T) {
	device(t, configs[0]) // skips where there is no plug-in
	if os.Getenv(severalEnv) == "" {
		test := exec.Command(os.Args[0], "-test.run", "^TestSeveral$", "-test.v")
		test.Env = append(os.Environ(), severalEnv+"=1", "XLA_FLAGS=--xla_force_host_platform_device_count=2")
		out, err := test.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS: TestSeveral", "it ran")
		return
	}
	_, err := compute.NewWithConfig("xla:cpu,device=2")
	require.ErrorContains(t, err, "xla:cpu has 2 devices, numbered from 0")
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
		require.Equal(t, compute.DeviceNum(1), compute.DeviceNum(on.NumDevices()))
		descriptions[on.(interface {
			DeviceDescription(compute.DeviceNum) string
		}).DeviceDescription(0)] = true

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
