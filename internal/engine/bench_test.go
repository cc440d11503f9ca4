//go:build unix

package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/model"
)

// smolConfig is the shape of SmolLM2-135M.
func smolConfig() *model.Config {
	return &model.Config{
		ModelType: "llama", HiddenAct: "silu", VocabSize: 49152, HiddenSize: 576, IntermediateSize: 1536,
		NumLayers: 30, NumHeads: 9, NumKVHeads: 3, HeadDim: 64, MaxPositions: 8192, RMSNormEps: 1e-5, RopeTheta: 1e5,
		TieEmbeddings: true,
	}
}

// benchEngine returns an engine with 16 slots of 2,560 tokens.
func benchEngine(b *testing.B) *Engine {
	device, err := cpu.New(nil)
	require.NoError(b, err)
	b.Cleanup(device.Finalize)
	w, err := model.Random(smolConfig(), 1)
	require.NoError(b, err)
	params, err := w.Params(device)
	require.NoError(b, err)
	e, err := New(Options{Device: device, Config: w.Config, Params: params, Slots: 16, Context: 2560})
	require.NoError(b, err)
	b.Cleanup(e.Close)
	return e
}

// prompts returns n prompts of some tokens, of which the first shared are equal.
func prompts(rng *rand.Rand, n, tokens, shared int) [][]int32 {
	list := make([][]int32, n)
	for i := range list {
		for j := range tokens {
			id := int32(rng.IntN(49152))
			if i > 0 && j < shared {
				id = list[0][j]
			}
			list[i] = append(list[i], id)
		}
	}
	return list
}

// used is the CPU time of the process.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// timed answers prompts at once. It returns when all have their first token, and the mean time of a round after that,
// with the prompts in the cache: else those that are computed first would be answered while others are computed.
func timed(b *testing.B, e *Engine, prompts [][]int32, tokens int) (first, round time.Duration) {
	answer := func(tokens int) time.Duration {
		var wg sync.WaitGroup
		start := used()
		for i, p := range prompts {
			wg.Go(func() {
				r := Request{Prompt: p, MaxTokens: tokens, Seed: uint64(i), Sampling: sampling.Settings{Temperature: 1, TopP: 1}}
				_, err := e.Complete(context.Background(), r)
				require.NoError(b, err)
			})
		}
		wg.Wait()
		return used() - start
	}
	first = answer(1)
	one := answer(1)
	return first, (answer(tokens) - one) / time.Duration(tokens-1)
}

// BenchmarkEngine measures the time to the first token of all, and that of a decoding round, for prompts that share
// some of their tokens or none. It is CPU time, the least of some runs, which other processes change less than wall
// time: run it with -cpu 1.
func BenchmarkEngine(b *testing.B) {
	e := benchEngine(b)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct{ n, tokens, shared int }{
		{1, 64, 0}, {16, 64, 0}, {1, 512, 0}, {8, 512, 0}, {8, 512, 511}, {8, 2048, 0}, {8, 2048, 2047},
	} {
		b.Run(fmt.Sprintf("n=%d/prompt=%d/shared=%d", c.n, c.tokens, c.shared), func(b *testing.B) {
			first, round := time.Hour, time.Hour
			timed(b, e, prompts(rng, c.n, c.tokens, c.shared), 4) // compiles
			b.ResetTimer()
			for range b.N {
				f, d := timed(b, e, prompts(rng, c.n, c.tokens, c.shared), 16)
				first, round = min(first, f), min(round, d)
			}
			b.ReportMetric(float64(first.Microseconds())/1e3, "ms-first")
			b.ReportMetric(float64(round.Microseconds())/1e3, "ms-round")
		})
	}
}

// BenchmarkRows measures the linear layers and the head, which compute up to 16 rows, for so many rows: what joining
// prompts and decoding in one round saves is at most what two numbers of rows take more than their sum. It is CPU time,
// the least of some runs: run it with -cpu 1.
func BenchmarkRows(b *testing.B) {
	device, err := cpu.New(nil)
	require.NoError(b, err)
	b.Cleanup(device.Finalize)
	w, err := model.Random(smolConfig(), 1)
	require.NoError(b, err)
	params, err := w.Params(device)
	require.NoError(b, err)
	n := len(params.Names)
	exec, err := NewExec(device, func(in []*Node) *Node {
		f := &model.Forward{Config: w.Config, Param: params.Lookup(in[:n])}
		hidden, _ := f.Hidden(model.Input{Tokens: in[n]})
		rows := min(hidden.Shape().Dim(0), 16)
		logprobs, _ := f.Normalized(Slice(Reshape(hidden, -1, w.Config.HiddenSize), AxisRange(0, rows)))
		return logprobs
	})
	require.NoError(b, err)
	in := (&runner{params: params}).weights(nil)
	for _, rows := range []int{1, 8, 16, 64, 72, 80, 128, 136, 144, 192} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			tokens := tensors.FromFlatDataAndDimensions(make([]int32, rows), rows, 1) // each row attends to itself only
			least := time.Hour
			for i := range b.N + 1 {
				began := used()
				out, err := exec.Call(append(in, tokens)...)
				require.NoError(b, err)
				if least = min(least, used()-began); i == 0 { // it compiles
					least = time.Hour
					b.ResetTimer()
				}
				require.NoError(b, out[0].FinalizeAll())
			}
			b.ReportMetric(float64(least.Microseconds())/1e3, "ms-cpu")
		})
	}
}
