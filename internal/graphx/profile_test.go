package graphx_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// TestNamedProfile: a plug-in for CPUs has the memory and the cores of the machine, and is else like one for GPUs.
func TestNamedProfile(t *testing.T) {
	for name, want := range map[string]graphx.Profile{
		"cpu":            {TokensPerCall: 1, FusedAttention: true, GathersMatrices: true, NoLoops: true, BFloat16: true},
		"go:parallelism": {TokensPerCall: 1},
		"other":          {TokensPerCall: 1},
		"xla":            {SlowCompile: true, TokensPerCall: 32, BFloat16: true, Serial: true, OwnMemory: true},
		"xla:cuda,cpu":   {SlowCompile: true, TokensPerCall: 32, BFloat16: true, Serial: true, OwnMemory: true},
		"xla:cpu":        {SlowCompile: true, TokensPerCall: 32, BFloat16: true},
		"xla:cpu,x=1":    {SlowCompile: true, TokensPerCall: 32, BFloat16: true},
	} {
		require.Equal(t, want, graphx.NamedProfile(name), name)
	}
}

// TestRunsAtOnce: one run keeps a GPU busy, and several the cores of a CPU.
func TestRunsAtOnce(t *testing.T) {
	require.Equal(t, 1, graphx.NamedProfile("xla:cuda").RunsAtOnce())
	require.Equal(t, runtime.GOMAXPROCS(0), graphx.NamedProfile("xla:cpu").RunsAtOnce())
	require.Equal(t, runtime.GOMAXPROCS(0), graphx.NamedProfile("cpu").RunsAtOnce())
}

// TestOpenedAs: a device of XLA says which plug-in it is of, also behind a wrapper of tests.
func TestOpenedAs(t *testing.T) {
	gpu := graphtest.NamedOn(graphtest.CPU(t), "xla:cuda")
	require.Equal(t, "xla:cuda", graphx.OpenedAs(gpu))
	require.True(t, graphx.ProfileOf(gpu).OwnMemory)
	require.Equal(t, "cpu", graphx.OpenedAs(graphtest.CPU(t)))
	counting, _ := graphtest.CountingOn(gpu)
	require.Equal(t, "xla:cuda", graphx.OpenedAs(counting))
}

// TestProfileOf: the table knows the CPU device by the name that it is registered under.
func TestProfileOf(t *testing.T) {
	require.Equal(t, graphx.NamedProfile(cpu.Name), graphx.ProfileOf(graphtest.CPU(t)))
	require.True(t, graphx.ProfileOf(graphtest.CPU(t)).FusedAttention)
	require.False(t, graphx.ProfileOf(graphtest.Reference(t)).BFloat16)
}
