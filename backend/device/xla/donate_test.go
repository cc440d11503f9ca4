//go:build cgo

package xla_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/pjrt"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/backend/device/xla"
	"github.com/goart-dev/art/internal/graphx"
)

// address is where a tensor lies in the memory of a device that shares it with the host.
func address(t *testing.T, on compute.Backend, x *tensors.Tensor) string {
	t.Helper()
	b, err := x.Buffer(on, 0)
	require.NoError(t, err)
	data, err := b.Data()
	require.NoError(t, err)
	return fmt.Sprintf("%p", data)
}

// rows counts up in a cache that is a result of the device: a row a call.
func rows(t *testing.T, on compute.Backend) (cache *tensors.Tensor, write *Exec) {
	t.Helper()
	zeros, err := NewExec(on, func(g *Graph) []*Node { return []*Node{Zeros(g, shapes.Make(dtypes.Float32, 64, 128))} })
	require.NoError(t, err)
	out, err := zeros.Call()
	require.NoError(t, err)
	write, err = NewExec(on, func(x, row *Node) *Node {
		value := BroadcastToDims(ConvertDType(AddScalar(row, 1), x.DType()), 1, 128)
		return DynamicUpdateSlice(x, value, []*Node{row, ZerosLike(row)})
	})
	require.NoError(t, err)
	return out[0], write
}

// TestDonate_InPlace: a donated cache is updated where it lies, and is gone afterwards; one that is not donated stays
// as it was, and the result lies elsewhere. Both have the same bits.
func TestDonate_InPlace(t *testing.T) {
	on := device(t, configs[0])
	cache, write := rows(t, on)
	kept, _ := rows(t, on)
	for row := range int32(8) {
		before := address(t, on, cache)
		donated, err := DonateTensorBuffer(cache, on, 0)
		require.NoError(t, err)
		require.False(t, cache.Ok(), "it was given away")
		out, err := write.Call(donated, row)
		require.NoError(t, err)
		cache = out[0]
		require.Equal(t, before, address(t, on, cache), "row %d", row)

		old, err := tensors.CopyFlatData[float32](kept)
		require.NoError(t, err)
		out, err = write.Call(kept, row)
		require.NoError(t, err)
		require.NotEqual(t, address(t, on, kept), address(t, on, out[0]))
		after, err := tensors.CopyFlatData[float32](kept)
		require.NoError(t, err)
		require.Equal(t, old, after)
		kept = out[0]

		want, err := tensors.CopyFlatData[float32](kept)
		require.NoError(t, err)
		got, err := tensors.CopyFlatData[float32](cache)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, float32(row+1), got[128*row])
	}
}

// TestDonate_Loop: a loop on the device carries a donated cache without a copy at its entry: the result lies where the
// cache did.
func TestDonate_Loop(t *testing.T) {
	on := device(t, configs[0])
	cache, _ := rows(t, on)
	loop, err := NewExec(on, func(x *Node) *Node {
		g, dims := x.Graph(), x.Shape()
		more := NewClosure(g, func(g *Graph) []*Node {
			i := Parameter(g, "i", shapes.Make(dtypes.Int32))
			_ = Parameter(g, "x", dims)
			return []*Node{LessThan(i, Const(g, int32(8)))}
		})
		step := NewClosure(g, func(g *Graph) []*Node {
			i, x := Parameter(g, "i", shapes.Make(dtypes.Int32)), Parameter(g, "x", dims)
			value := BroadcastToDims(ConvertDType(AddScalar(i, 1), x.DType()), 1, 128)
			return []*Node{AddScalar(i, 1), DynamicUpdateSlice(x, value, []*Node{i, ZerosLike(i)})}
		})
		return While(more, step, Const(g, int32(0)), x)[1]
	})
	require.NoError(t, err)
	for range 3 {
		before := address(t, on, cache)
		donated, err := DonateTensorBuffer(cache, on, 0)
		require.NoError(t, err)
		out, err := loop.Call(donated)
		require.NoError(t, err)
		cache = out[0]
		require.Equal(t, before, address(t, on, cache))
	}
	got, err := tensors.CopyFlatData[float32](cache)
	require.NoError(t, err)
	for row := range 64 {
		want := float32(0)
		if row < 8 {
			want = float32(row + 1)
		}
		require.Equal(t, want, got[128*row])
	}
}

// TestDonate_Twice: a buffer that is given twice, once donated, gives the result that it gives when it is not.
func TestDonate_Twice(t *testing.T) {
	for _, config := range configs {
		on := device(t, config)
		x := tensors.FromValue([]float32{1, 2, 3})
		add, err := NewExec(on, func(a, b *Node) *Node { return Add(a, MulScalar(b, 10)) })
		require.NoError(t, err)
		buffer, err := x.Buffer(on, 0)
		require.NoError(t, err)
		same, err := tensors.FromBuffer(buffer)
		require.NoError(t, err)
		donated, err := DonateTensorBuffer(x, on, 0)
		require.NoError(t, err)
		out, err := add.Call(donated, same)
		require.NoError(t, err)
		got, err := tensors.CopyFlatData[float32](out[0])
		require.NoError(t, err)
		require.Equal(t, []float32{11, 22, 33}, got)
	}
}

// TestDonate_AfterError: memory that was donated to a program which fails while it runs, since there is no room for a
// result of 2^50 bytes, is freed at once: each call has 256 MiB. The garbage collector does not run here.
func TestDonate_AfterError(t *testing.T) {
	on := device(t, configs[0])
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	p := graphx.NewPrograms(on, 1<<20)
	const n, calls = 1 << 26, 8
	before := pjrt.BuffersAlive()
	var memory []int
	for range calls {
		list, err := graphx.ZeroTensors(on, shapes.Make(dtypes.Float32, n), 1)
		require.NoError(t, err)
		in, err := graphx.Donate(on, list)
		require.NoError(t, err)
		_, err = p.Call("key", func(in []*Node) []*Node {
			return []*Node{AddScalar(in[0], 1), BroadcastPrefix(in[0], 1<<22)}
		}, in)
		require.ErrorIs(t, err, xla.ErrMemory)
		require.Equal(t, before, pjrt.BuffersAlive())
		memory = append(memory, resident(t))
	}
	// The allocator may keep what a call had for a while; if nothing were freed, each call would add as much.
	require.Less(t, memory[calls-1]-memory[0], calls/2*4*n, "bytes: %v", memory)
}

// resident is how many bytes of memory the process has. It skips the test where the system does not say.
func resident(t *testing.T) int {
	t.Helper()
	content, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("the system does not say what memory a process has")
	}
	var all, pages int
	_, err = fmt.Sscan(string(content), &all, &pages)
	require.NoError(t, err)
	return pages * os.Getpagesize()
}
