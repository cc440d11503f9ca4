package local

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/machine"
)

// cards are GPUs with so much memory, a 64th of which is in use.
func cards(gib ...int64) (g machine.GPUs) {
	for _, n := range gib {
		g.List = append(g.List, machine.GPU{Name: "card", Total: n << 30, Free: n<<30 - n<<24})
	}
	return g
}

func noEnv(string) string { return "" }

// TestUsableOf: of several GPUs the smallest bounds the plan; of each, what is free, up to XLA's part of the whole.
func TestUsableOf(t *testing.T) {
	for name, c := range map[string]struct {
		names []string
		gib   float64
	}{
		"first":         {[]string{"xla:cuda"}, 0.75 * 64},
		"second":        {[]string{"xla:cuda,device=1"}, 0.75 * 16},
		"both":          {[]string{"xla:cuda", "xla:cuda,device=1"}, 0.75 * 16},
		"nearly all":    {[]string{"xla:cuda,memory_fraction=0.99"}, 63},
		"taken already": {[]string{"xla:cuda,memory_fraction=0.99,preallocate=true"}, 0.99 * 64},
	} {
		got, err := usableOf(c.names, cards(64, 16), noEnv)
		require.NoError(t, err, name)
		require.InDelta(t, c.gib, float64(got)/(1<<30), 1e-6, name)
	}
	for says, name := range map[string]string{
		"none of number 2": "xla:cuda,device=2", "its name is xla:cuda": "xla:/plugin.so",
		"leaves nothing": "xla:cuda,memory_fraction=0",
	} {
		_, err := usableOf([]string{"xla:cuda", name}, cards(64, 16), noEnv)
		require.ErrorContains(t, err, says)
	}
}

// gpu is a device that says that it is a GPU.
type gpu struct{ compute.Backend }

func (gpu) OpenedAs() string { return "xla:cuda" }

// openGPU opens a backend on the CPU device with the profile of a GPU, of which nvidia-smi prints a text, and returns
// what is logged.
func openGPU(t *testing.T, prints string, opts Options) (*Backend, string) {
	if runtime.GOOS == "windows" {
		t.Skip("nvidia-smi is a script here")
	}
	folder := t.TempDir()
	script := []byte("#!/bin/sh\ncat <<'END'\n" + prints + "END\n")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "nvidia-smi"), script, 0o700)) //nolint:gosec // it is run
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	t.Setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
	compute.Register("test-gpu", func(string) (compute.Backend, error) {
		device, err := cpu.New(nil)
		return gpu{device}, err
	})
	var log bytes.Buffer
	opts.Dir, opts.Logger = t.TempDir(), slog.New(slog.NewTextHandler(&log, nil))
	b, err := Open(t.Context(), &opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b, log.String()
}

// TestOpen_GPU: the memory of the GPU that the name says is what base models and trainings are planned with; where
// nvidia-smi does not tell, 8 GiB beside the weights, and the log says why.
func TestOpen_GPU(t *testing.T) {
	const list = "card, 1, 8192, 8000, GPU-a, Disabled\ncard, 1, 4096, 4000, GPU-b, Disabled\n"
	for device, free := range map[string]int64{"test-gpu:cuda": 6 << 30, "test-gpu:cuda,device=1": 3 << 30} {
		b, log := openGPU(t, list, Options{Device: device})
		require.Contains(t, log, `msg="memory of the device" usable="`+gigabytes(float64(free))+`"`)
		p, err := b.book(smol, dtypes.Float32, 0)
		require.NoError(t, err)
		require.True(t, p.Known)
		require.InDelta(t, 0.9*float64(free), p.Room.Bytes, 1)
	}
	b, log := openGPU(t, "", Options{Device: "test-gpu:cuda"})
	require.Contains(t, log, "level=WARN")
	require.Contains(t, log, "8.00 GiB beside the weights")
	require.Contains(t, log, `why="there is no GPU that nvidia-smi lists"`)
	_, known := b.memory.Free()
	require.False(t, known)
}

// TestTrain_GPU: a training that takes more than the GPU has is made as small as it gets and tried, where one on the
// CPU is refused.
func TestTrain_GPU(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	b.memory.Profile.OwnMemory = true
	b.memory.Free = func() (int64, bool) { return 1 << 10, true }
	_, err := m.TrainSFT(t.Context(), longTrajectories(), nil)
	require.NoError(t, err)
	sizes := b.models[m].trainer.Sizes()
	require.True(t, sizes.Recompute)
	require.True(t, sizes.Narrow)
}
