package engine

import (
	"context"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/dev/fixtures"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/model"
)

// ofFixture starts an engine with a model of internal/dev/testdata/architectures.
func ofFixture(t *testing.T, dir string) (*Engine, *model.Params) {
	t.Helper()
	w, err := model.Load(dir)
	require.NoError(t, err)
	device := graphtest.Device(t)
	params, err := w.Params(device)
	require.NoError(t, err)
	e, err := New(Options{Device: device, Config: w.Config, Params: params, Slots: 2, Context: 64})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e, params
}

// TestArchitectures_GreedyMatchesTransformers: greedy decoding equals the continuation that python3
// internal/dev/testdata/architectures/make.py wrote (transformers 4.57.1, torch 2.15.0, CPU), through the cache.
func TestArchitectures_GreedyMatchesTransformers(t *testing.T) {
	for _, m := range fixtures.Models(t) {
		t.Run(m.Name, func(t *testing.T) {
			e, _ := ofFixture(t, m.Dir)
			r, err := e.Complete(context.Background(), Request{Prompt: m.Prompt, MaxTokens: len(m.Greedy)})
			require.NoError(t, err)
			require.Equal(t, m.Greedy, r.IDs)
		})
	}
}

// TestArchitectures_SamplerAndTrainerAgree: the logprobs of a reply equal those that training computes bit for bit.
func TestArchitectures_SamplerAndTrainerAgree(t *testing.T) {
	for _, m := range fixtures.Models(t) {
		t.Run(m.Name, func(t *testing.T) {
			e, params := ofFixture(t, m.Dir)
			r, err := e.Complete(context.Background(), Request{
				Prompt: m.Prompt, MaxTokens: 20, Seed: testSeed, Sampling: sampling.Settings{Temperature: 1, TopP: 1},
			})
			require.NoError(t, err)
			sameLogprobs(t, trained(t, e.opts.Config, params, m.Prompt, r.IDs), r.Logprobs, m.Name)
		})
	}
}

// trained computes the logprobs of reply after prompt as the trainer does with a frozen head.
func trained(t *testing.T, c *model.Config, params *model.Params, prompt, reply []int32) []float32 {
	t.Helper()
	ids := make([]int32, 48)
	copy(ids[copy(ids, prompt):], reply)
	at := make([]int32, len(reply))
	for i := range at {
		at[i] = int32(len(prompt) + i - 1)
	}
	in := []any{}
	for _, x := range params.Tensors {
		in = append(in, x)
	}
	in = append(in, tensors.FromFlatDataAndDimensions(ids, 1, len(ids)), tensors.FromFlatDataAndDimensions(at, len(at), 1),
		tensors.FromFlatDataAndDimensions(reply, len(reply), 1))
	out, err := ExecOnce(graphtest.Device(t), func(in []*Node) *Node {
		n := len(params.Names)
		f := &model.Forward{Config: c, Param: params.Lookup(in[:n]), Frozen: true}
		hidden, _ := f.Hidden(model.Input{Tokens: in[n]})
		return f.TokenLogProbs(Gather(Reshape(hidden, -1, c.HiddenSize), in[n+1]), in[n+2])
	}, in...)
	require.NoError(t, err)
	return tensors.MustCopyFlatData[float32](out)
}
