//go:build cgo

package xla_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/sampling"
)

// TestPrograms: an engine that has been warmed up compiles nothing for requests of any length, with and without top-p.
// The device compiles each program once, though it marks donated inputs, and reports how long it takes.
func TestPrograms(t *testing.T) {
	w, on := weights(t)["random"], device(t, configs[0])
	params, err := w.Params(on)
	require.NoError(t, err)
	opts := engine.Options{
		Device: on, Config: w.Config, Params: params, Slots: 2, Context: 24, FewShapes: true, DecodeSteps: 8,
	}
	e, err := engine.New(opts)
	require.NoError(t, err)
	defer e.Close()
	before, took := graphx.Compiled(on)
	start := time.Now()
	require.NoError(t, e.Warm(t.Context(), nil))
	wall := time.Since(start)
	all, total := graphx.Compiled(on)
	list := engine.Programs(opts)
	const stores = 1 // what loops over rows have computed
	require.Equal(t, len(list)+stores, all-before, "%+v", list)
	require.Positive(t, total-took)
	require.Less(t, total-took, wall)
	t.Logf("%d programs in %v of %v", len(list), total-took, wall)

	rng := rand.New(rand.NewPCG(seed, 13))
	for n := 1; n < 24; n += 2 {
		_, err := e.Complete(context.Background(), engine.Request{
			Prompt: tokens(rng, w.Config, n), MaxTokens: 5,
			Sampling: sampling.Settings{Temperature: 1, TopP: []float64{1, 0.9}[n/2%2]},
		})
		require.NoError(t, err)
	}
	after, _ := graphx.Compiled(on)
	require.LessOrEqual(t, after-all, 1, "one that copies a block of the cache")
}

// TestPrograms_Ahead: a program that is compiled ahead is compiled then and not by its call, also one whose inputs
// could be donated; and the device says that it is one of a CPU, whose cores several runs share.
func TestPrograms_Ahead(t *testing.T) {
	on := device(t, configs[0])
	require.Equal(t, "xla:cpu", graphx.OpenedAs(on))
	require.False(t, graphx.ProfileOf(on).Serial)
	programs := graphx.NewPrograms(on, 1<<30)
	double := func(in []*graph.Node) []*graph.Node { return []*graph.Node{graph.Add(in[0], in[0])} }
	in := []any{tensors.FromFlatDataAndDimensions([]float32{1, 2, 3}, 3)}
	before, _ := graphx.Compiled(on)
	require.NoError(t, programs.Compile("double", double, in))
	ahead, _ := graphx.Compiled(on)
	require.Equal(t, before+1, ahead)
	out, err := programs.Call("double", double, in)
	require.NoError(t, err)
	require.Equal(t, []float32{2, 4, 6}, tensors.MustCopyFlatData[float32](out[0]))
	after, _ := graphx.Compiled(on)
	require.Equal(t, ahead, after)
}
