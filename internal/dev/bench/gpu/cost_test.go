package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCost_Demanded: the counts of a shape, by hand. Qwen2.5-7B has 7.07e9 parameters in matrices that tokens are
// multiplied by.
func TestCost_Demanded(t *testing.T) {
	c, err := configOf("qwen2.5-7b")
	require.NoError(t, err)
	const p, queries, layers = 7070285824.0, 28 * 128, 28
	for job, want := range map[string]float64{
		"train":   4*p + 7*(16384+1)*queries*layers,
		"prefill": 2*(p-152064*3584) + 2*152064*3584/16384.0 + 2*(16384+1)*queries*layers,
		"decode":  2*p + 4*(128+16385/2.0)*queries*layers,
		"grpo":    0,
	} {
		require.InEpsilon(t, 1+want, 1+flopOfToken(c, result{Job: job, Batch: 1, Tokens: 16384}), 1e-9, job)
	}
}

// TestCost_Attention: what attention costs is that of counting the pairs of a causal sequence one by one.
func TestCost_Attention(t *testing.T) {
	c, err := configOf("tiny")
	require.NoError(t, err)
	_, multiplied := parameters(c)
	const length = 100
	pairs := 0
	for at := range length {
		pairs += at + 1
	}
	forward := 4 * float64(pairs*c.NumHeads*c.HeadDim*c.NumLayers)
	got := length * (flopOfToken(c, result{Job: "train", Batch: 1, Tokens: length}) - 4*float64(multiplied))
	require.InEpsilon(t, 3.5*forward, got, 1e-9)
}

// TestCost_Bytes: all sequences share the weights, and each reads its own keys and values. transformers' cache has the
// type of the weights.
func TestCost_Bytes(t *testing.T) {
	c, err := configOf("qwen2.5-7b")
	require.NoError(t, err)
	one := result{Job: "decode", Batch: 1, Tokens: 255, Weights: "bfloat16", Cache: "bfloat16"}
	const weights, pair, context = 2 * 7070285824.0, 2 * 2 * 4 * 128 * 28, 256
	require.InEpsilon(t, weights+context*pair, bytesOfToken(c, one), 1e-9)
	many := one
	many.Batch = 64
	require.InEpsilon(t, weights/64+context*pair, bytesOfToken(c, many), 1e-9)
	wide := one
	wide.Cache = "float32"
	require.InEpsilon(t, weights+2*context*pair, bytesOfToken(c, wide), 1e-9)
	theirs := one
	theirs.Cache = ""
	require.InEpsilon(t, bytesOfToken(c, one), bytesOfToken(c, theirs), 1e-9)
	one.Job = "train"
	require.Zero(t, bytesOfToken(c, one))
}
