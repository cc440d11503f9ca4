package graphx_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// TestNamedProfile: a configuration changes what is known of memory and nothing else.
func TestNamedProfile(t *testing.T) {
	for name, want := range map[string]graphx.Profile{
		"cpu":            {TokensPerCall: 1, FusedAttention: true, BFloat16: true},
		"go:parallelism": {TokensPerCall: 1},
		"xla":            {SlowCompile: true, TokensPerCall: 32, BFloat16: true, UnknownMemory: true},
		"xla:cuda,cpu":   {SlowCompile: true, TokensPerCall: 32, BFloat16: true, UnknownMemory: true},
		"xla:cpu":        {SlowCompile: true, TokensPerCall: 32, BFloat16: true},
		"xla:cpu,x=1":    {SlowCompile: true, TokensPerCall: 32, BFloat16: true},
	} {
		require.Equal(t, want, graphx.NamedProfile(name), name)
	}
}

// TestProfileOf: the table knows the CPU device by the name that it is registered under.
func TestProfileOf(t *testing.T) {
	require.Equal(t, graphx.NamedProfile(cpu.Name), graphx.ProfileOf(graphtest.CPU(t)))
	require.True(t, graphx.ProfileOf(graphtest.CPU(t)).FusedAttention)
	require.False(t, graphx.ProfileOf(graphtest.Reference(t)).BFloat16)
}
