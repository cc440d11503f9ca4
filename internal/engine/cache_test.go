package engine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/sampling"
)

// places returns where the tensors of the cache lie in the memory of a device that shares it with the host. XLA chooses
// which result takes the place of which input of its size, so their order does not matter there.
func (k *cache) places() (list []string, err error) {
	for _, x := range k.layers {
		b, err := x.Buffer(k.device, 0)
		if err != nil {
			return nil, err
		}
		flat, err := b.Data()
		if err != nil {
			return nil, err
		}
		list = append(list, fmt.Sprintf("%p", flat))
	}
	if graphtest.HasLoops() {
		slices.Sort(list)
	}
	return list, nil
}

// TestCache_InPlace: every graph writes the cache where it lies, those of prompts and of single tokens, the one that
// copies a block, and on a device with loops those over blocks, and the one that stores what a loop over rows has made.
// Otherwise the cache would be copied for each of them.
func TestCache_InPlace(t *testing.T) {
	device := graphtest.Device(t)
	if !device.HasSharedBuffers() {
		t.Skip("the host does not see the memory of this device")
	}
	params, err := testWeights(t).Params(device)
	require.NoError(t, err)
	steps := 1
	if graphtest.HasLoops() {
		steps = 4
	}
	e, err := New(Options{
		Device: device, Config: testConfig(), Params: params, FewShapes: true, DecodeSteps: steps, Slots: 2,
		Context: 2 * blockTokens, CacheTokens: 2 * blockTokens,
	})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	var want []string
	same := func(what string, change func(r *runner) error) {
		var got []string
		require.NoError(t, e.do(t.Context(), func(l *loop) (err error) {
			if err = change(l.runner); err == nil {
				got, err = l.runner.cache.places()
			}
			return err
		}))
		if want == nil {
			want = got
		}
		require.Equal(t, want, got, what)
	}
	nothing := func(*runner) error { return nil }
	same("the new cache", nothing)
	require.Len(t, slices.Compact(slices.Clone(want)), 2*testConfig().NumLayers)
	for _, tokens := range []int{1, 5, 9} { // one graph, and more
		_, err := e.Complete(t.Context(), Request{
			Prompt: []int32{1, 2, int32(tokens)}, MaxTokens: tokens, Sampling: sampling.Settings{Temperature: 1, TopP: 1},
		})
		require.NoError(t, err)
		same(fmt.Sprintf("a reply of %d tokens", tokens), nothing)
		same("a copied block", func(r *runner) error { return r.copyBlock(1, 2) })
	}
	if steps == 1 {
		return
	}
	call := decodeCall{
		token: 7, start: blockTokens + 3, count: steps, blocks: []int32{1, 2}, uniform: make([]float64, steps),
		sampling: sampling.Settings{Temperature: 1, TopP: 1},
	}
	for rows, copies := range map[int]bool{1: true, 2: false} {
		require.Equal(t, copies, copiesRows(e.opts, Program{Rows: rows, Window: 2 * blockTokens}))
		same(fmt.Sprintf("a loop of %d rows", rows), func(r *runner) error {
			_, err := r.decode(nil, slices.Repeat([]decodeCall{call}, rows))
			return err
		})
	}
}
