package graphx

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
)

// newDevice returns the device under test.
func newDevice(t testing.TB) compute.Backend {
	t.Helper()
	device, err := NewDevice()
	require.NoError(t, err)
	t.Cleanup(device.Finalize)
	return device
}

// newExec compiles a function of one output for as many shapes as the test has.
func newExec(t testing.TB, device compute.Backend, build func(in []*graph.Node) *graph.Node) *graph.Exec {
	t.Helper()
	exec, err := graph.NewExec(device, build)
	require.NoError(t, err)
	t.Cleanup(exec.Finalize)
	return exec.SetMaxCache(-1)
}

// call runs a graph of one output.
func call[T float32 | float64](t testing.TB, exec *graph.Exec, inputs ...*tensors.Tensor) []T {
	t.Helper()
	args := make([]any, len(inputs))
	for i, x := range inputs {
		args[i] = x
	}
	out, err := exec.Call1(args...)
	require.NoError(t, err)
	defer out.MustFinalizeAll()
	return tensors.MustCopyFlatData[T](out)
}

// tensor copies values.
func tensor[T float32 | float64](values []T, dims ...int) *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(append([]T{}, values...), dims...)
}

// printed returns what f writes to standard output.
func printed(t *testing.T, f func()) string {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = write
	defer func() { os.Stdout = stdout }()
	f()
	require.NoError(t, write.Close())
	text, err := io.ReadAll(read)
	require.NoError(t, err)
	return string(text)
}

// TestNewDevice_PrintsNothing: a library does not write to the standard output of its program.
func TestNewDevice_PrintsNothing(t *testing.T) {
	require.Empty(t, printed(t, func() { newDevice(t) }))
	require.Equal(t, "seen", printed(t, func() { os.Stdout.WriteString("seen") }), "the test must see what is printed")
}

// TestNewDevice_ManyLargeProducts runs independent products in one graph, each of which asks for all workers. With the
// bound on workers that the device sets itself they wait for one another for ever.
func TestNewDevice_ManyLargeProducts(t *testing.T) {
	const n, products = 200, 8 // n³ is above the 4 Mi multiply-adds from which a product is split
	exec := newExec(t, newDevice(t), func(in []*graph.Node) *graph.Node {
		sum := graph.MatMul(in[0], in[1])
		for i := 1; i < products; i++ {
			sum = graph.Add(sum, graph.MatMul(graph.AddScalar(in[0], float64(i)), in[1]))
		}
		return sum
	})
	x := make([]float32, n*n)
	for i := range x {
		x[i] = float32(i % 3)
	}
	done := make(chan []float32, 1)
	go func() { done <- call[float32](t, exec, tensor(x, n, n), tensor(x, n, n)) }()
	select {
	case y := <-done:
		want := float32(0)
		for k := range n { // row 0 of (x+i) times column 0 of x
			want += products*x[k]*x[k*n] + products*(products-1)/2*x[k*n]
		}
		require.Equal(t, want, y[0])
	case <-time.After(time.Minute):
		t.Fatal("the device hangs")
	}
}
