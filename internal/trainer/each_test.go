package trainer

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/pack"
)

// gpuOf is the CPU device with hooks, and with the profile of a GPU.
func gpuOf(t testing.TB, hooks graphtest.Hooks) Options {
	return Options{Device: graphtest.NamedOn(graphtest.HookedOn(graphtest.CPU(t), hooks), "xla:cuda"), FewShapes: true,
		MicroTokens: 128, Alone: true}
}

// manyLayouts is a batch of three layouts, of which that of the shortest sequences occurs twice.
func manyLayouts() (batch []grpo.Sequence) {
	for _, n := range []int{100, 50, 20, 21, 22, 23, 24, 25, 26, 27} {
		batch = append(batch, randomSequenceOf(n))
	}
	return batch
}

// TestEach_CompilesAhead: on a GPU all programs of a pass are compiled before the first runs, at least two of them at
// the same time; micro-batches run one at a time, and give the bits that several at once give.
func TestEach_CompilesAhead(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	var compiled, compiledAtRun, runs, running, most atomic.Int32
	second := make(chan struct{}) // closed when the second one begins
	opts := gpuOf(t, graphtest.Hooks{
		Compile: func() error {
			if compiled.Add(1) == 2 {
				close(second)
			}
			select {
			case <-second:
				return nil
			case <-time.After(20 * time.Second):
				return errors.New("the first graph was compiled alone")
			}
		},
		Run: func() error {
			if runs.Add(1) == 1 {
				compiledAtRun.Store(compiled.Load())
			}
			most.Store(max(most.Load(), running.Add(1)))
			return nil
		},
		Ran: func() { running.Add(-1) },
	})
	tr, s := trainerOn(t, opts.Device)
	batch := manyLayouts()
	tr = New(tr.target, opts)
	pieces, err := tr.microBatches(bare(batch), 0)
	require.NoError(t, err)
	layouts := map[pack.Layout]bool{}
	for _, p := range pieces {
		layouts[p.Layout] = true
	}
	require.Len(t, layouts, 3)
	require.Len(t, pieces, 4)

	got, err := tr.Logprobs(context.Background(), s, batch, 0)
	require.NoError(t, err)
	require.EqualValues(t, len(layouts), compiled.Load())
	require.EqualValues(t, len(layouts), compiledAtRun.Load())
	require.EqualValues(t, len(pieces), runs.Load())
	require.EqualValues(t, 1, most.Load())

	opts.Workers = 3
	want, err := New(tr.target, opts).Logprobs(context.Background(), s, batch, 0)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestEach_GradientCompilesAhead: so are the programs of gradients.
func TestEach_GradientCompilesAhead(t *testing.T) {
	var compiled, atRun atomic.Int32
	opts := gpuOf(t, graphtest.Hooks{
		Compile: func() error { compiled.Add(1); return nil },
		Run: func() error {
			atRun.CompareAndSwap(0, compiled.Load())
			return nil
		},
	})
	tr, s := trainerOn(t, opts.Device)
	tr = New(tr.target, opts)
	batch := manyLayouts()
	pieces, err := tr.microBatches(batch, 0)
	require.NoError(t, err)
	layouts := map[pack.Layout]bool{}
	for _, p := range pieces {
		layouts[p.Layout] = true
	}
	on, err := tr.Start(s)
	require.NoError(t, err)
	defer on.Free()
	_, err = on.accumulate(context.Background(), batch, lossCall{loss: grpo.PolicyLoss{}, denominator: 1})
	require.NoError(t, err)
	require.EqualValues(t, len(layouts), atRun.Load())
	require.Greater(t, compiled.Load(), atRun.Load(), "what adds gradients is compiled later")
}

// TestEach_CompileFails: a program that does not compile ahead gives the error that its call gives.
func TestEach_CompileFails(t *testing.T) {
	broken := errors.New("broken")
	var errs []error
	for _, name := range []string{"xla:cuda", "xla:cpu"} {
		device := graphtest.HookedOn(graphtest.CPU(t), graphtest.Hooks{Compile: func() error { return broken }})
		tr, s := trainerOn(t, graphtest.NamedOn(device, name))
		_, err := tr.Logprobs(context.Background(), s, manyLayouts(), 0)
		require.ErrorIs(t, err, broken, name)
		errs = append(errs, err)
	}
	require.EqualError(t, errs[0], errs[1].Error())
}

// TestEach_NoRoom: where there is room for one program, the others are left to their calls, and none is compiled twice
// for it.
func TestEach_NoRoom(t *testing.T) {
	var compiled atomic.Int32
	opts := gpuOf(t, graphtest.Hooks{Compile: func() error { compiled.Add(1); return nil }})
	opts.ProgramBytes = 1
	tr, s := trainerOn(t, opts.Device)
	tr = New(tr.target, opts)
	batch := manyLayouts()[:3]
	pieces, err := tr.microBatches(bare(batch), 0)
	require.NoError(t, err)
	require.Len(t, pieces, 3)
	_, err = tr.Logprobs(context.Background(), s, batch, 0)
	require.NoError(t, err)
	require.EqualValues(t, 3, compiled.Load())
}

// TestSizes_GPU: on a GPU memory is that of one micro-batch at a time.
func TestSizes_GPU(t *testing.T) {
	opts := gpuOf(t, graphtest.Hooks{})
	require.Equal(t, 1, New(smallTarget, opts).Sizes().Workers)
	opts.Device = graphtest.NamedOn(graphtest.CPU(t), "xla:cpu")
	require.Equal(t, runtime.GOMAXPROCS(0), New(smallTarget, opts).Sizes().Workers)
}

// TestInParallel_Panic: a panic of a worker is an error of the call, not the end of the process.
func TestInParallel_Panic(t *testing.T) {
	err := inParallel(t.Context(), 0, 4, 2, func(_, i int) error {
		if i == 1 {
			panic("worker is broken")
		}
		return nil
	})
	require.ErrorContains(t, err, "worker is broken")
}
