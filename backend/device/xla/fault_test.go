//go:build cgo

package xla

import (
	"errors"
	"os"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/stablehlo"
	xlashapes "github.com/gomlx/go-xla/types/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

// onCPU opens xla:cpu, or skips the test.
func onCPU(t *testing.T) compute.Backend {
	t.Helper()
	on, err := New("cpu")
	if err != nil && os.Getenv("ART_REQUIRE_XLA") == "" {
		t.Skipf("NOT TESTED ON XLA: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(on.Finalize)
	return on
}

// TestFault_Kinds: what XLA says of a failure tells its kind, and the error says what to do. The texts are those of
// XLA's and CUDA's sources; that of xla:cpu for memory is tested below.
func TestFault_Kinds(t *testing.T) {
	const internal = "PJRT error (code=13): INTERNAL: Failed to launch CUDA kernel: "
	d := &device{name: "xla:cuda"}
	for text, want := range map[string]error{
		"PJRT error (code=8): RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1 bytes": ErrMemory,
		"PJRT error (code=14): UNAVAILABLE: the device is gone":                                   ErrLost,
		"PJRT error (code=15): DATA_LOSS: uncorrectable":                                          ErrLost,
		internal + "CUDA_ERROR_OUT_OF_MEMORY: out of memory":                                      ErrMemory,
		internal + "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered":         ErrLost,
		internal + "CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered":            ErrLost,
	} {
		inner := errors.New(text)
		for _, kind := range []error{nil, ErrCompile} {
			err := d.fault(inner, kind)
			require.ErrorIs(t, err, want, text)
			require.ErrorIs(t, err, inner)
			var typed *Error
			require.ErrorAs(t, err, &typed)
			require.Equal(t, want, typed.DeviceFault())
			require.ErrorContains(t, err, "xla:cuda: "+want.Error()+": PJRT error")
			require.ErrorContains(t, err, remedies[want])
		}
	}
	for _, text := range []string{
		"PJRT error (code=3): INVALID_ARGUMENT: no such shape", "wrong number of parameters",
		internal + "CUDA_ERROR_INVALID_PTX: a PTX JIT compilation failed", "UNAVAILABLE: said by something else",
	} {
		inner := errors.New(text)
		require.Same(t, inner, d.fault(inner, nil), text)
		require.ErrorIs(t, d.fault(inner, ErrCompile), ErrCompile)
	}
	require.NoError(t, d.fault(nil, ErrCompile))
	for _, kind := range []error{ErrCompile, ErrMemory, ErrLost} {
		require.NotEmpty(t, remedies[kind])
	}
}

// TestFault_Compile: the refusal of a program by xla:cpu, which has no such custom call. The device computes on.
func TestFault_Compile(t *testing.T) {
	on := onCPU(t)
	build := func(target string) error {
		b := on.Builder("custom")
		main, err := programOf(b.Main())
		require.NoError(t, err)
		shape := shapes.Make(dtypes.Float32, 4)
		x, err := b.Main().Parameter("x", shape, nil)
		require.NoError(t, err)
		if target != "" {
			out := []xlashapes.Shape{xlashapes.Make(dtypes.Float32, 4)}
			_, err = stablehlo.CustomCallV2(target, "", main.Inputs, nil, out, nil)
			require.NoError(t, err)
			call := main.Statements[len(main.Statements)-1]
			call.Attributes["has_side_effect"] = true // or XLA drops it, as nothing uses its result
		}
		require.NoError(t, b.Main().Return([]compute.Value{x}, nil))
		made, err := b.Compile()
		if err == nil {
			var buffer compute.Buffer
			buffer, err = on.BufferFromFlatData(0, make([]float32, 4), shape)
			require.NoError(t, err)
			_, err = made.Execute([]compute.Buffer{buffer}, []bool{false}, 0)
		}
		return err
	}
	err := build("no_such_call")
	require.ErrorIs(t, err, ErrCompile)
	require.ErrorContains(t, err, "no_such_call")
	require.ErrorContains(t, err, "xla:cpu: ")
	require.NoError(t, build(""))
}

// TestFault_Memory: xla:cpu refuses to make a result of 2^50 bytes, more than any process can address. The error comes
// out of GoMLX typed, and the device computes on.
func TestFault_Memory(t *testing.T) {
	on := onCPU(t)
	run := func(dims ...int) error {
		exec, err := graph.NewExec(on, func(x *graph.Node) *graph.Node { return graph.BroadcastToDims(x, dims...) })
		require.NoError(t, err)
		defer exec.Finalize()
		out, err := exec.Call(float32(1))
		for _, x := range out {
			x.MustFinalizeAll()
		}
		return err
	}
	err := run(1<<24, 1<<24)
	require.ErrorIs(t, err, ErrMemory)
	var typed *Error
	require.ErrorAs(t, err, &typed)
	require.Equal(t, "xla:cpu", typed.Device)
	require.NoError(t, run(2, 2))
}
