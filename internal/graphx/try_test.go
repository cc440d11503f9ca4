package graphx

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

func explode() { panic(fmt.Errorf("boom: %w", io.ErrUnexpectedEOF)) }

func TestTry_ReturnsWhatWasPanicked(t *testing.T) {
	err := Try(explode)
	require.EqualError(t, err, "boom: unexpected EOF")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "boom: unexpected EOF", fmt.Sprintf("%v", err))
	require.Equal(t, "boom: unexpected EOF", fmt.Sprintf("%s", err))
	require.Equal(t, `"boom: unexpected EOF"`, fmt.Sprintf("%q", err))
	require.Contains(t, fmt.Sprintf("%+v", err), "graphx.explode", "the stack must be available")
}

func TestTry_Values(t *testing.T) {
	require.NoError(t, Try(func() {}))
	require.EqualError(t, Try(func() { panic("text") }), "text")
	require.EqualError(t, Try(func() { panic(42) }), "42")
	var runtimeErr runtime.Error
	require.ErrorAs(t, Try(func() { _ = []int{}[len("x")] }), &runtimeErr)
	require.ErrorAs(t, Try(func() { panic(nil) }), new(*runtime.PanicNilError))
}

func TestTry_WrappedStackStaysOutOfMessage(t *testing.T) {
	device, err := gobackend.New("parallelism=-1")
	require.NoError(t, err)
	defer device.Finalize()
	err = Try(func() {
		g := graph.NewGraph(device, "bad")
		graph.Add(graph.Const(g, []float32{1, 2}), graph.Const(g, []float32{1, 2, 3}))
	})
	require.Error(t, err)
	require.NotContains(t, err.Error(), ".go:")
	require.Contains(t, fmt.Sprintf("%+v", err), "try_test.go")
	var panicErr *PanicError
	require.True(t, errors.As(err, &panicErr))
	require.False(t, strings.Contains(fmt.Sprintf("%v", fmt.Errorf("grpo: %w", err)), ".go:"))
}
