package graphx

import (
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

func TestUpload_RoundTrip(t *testing.T) {
	device := graphtest.Device(t)
	values := []float32{1, float32(math.Copysign(0, -1)), float32(math.Inf(1)), 1e-45, math.Float32frombits(0x7fc00123),
		-3}
	x, err := Upload(device, values, 2, 3)
	require.NoError(t, err)
	require.Equal(t, []int{2, 3}, x.Shape().Dimensions)
	values[0] = 7 // Upload copies
	got := tensors.MustCopyFlatData[float32](x)
	require.Equal(t, float32(1), got[0])
	for i := range got[1:] {
		require.Equal(t, math.Float32bits(values[i+1]), math.Float32bits(got[i+1]))
	}
}

// TestUploadMatrix_BFloat16: numbers that bfloat16 has arrive as they are, on a device that packs and on one that does
// not, and a matmul with them gives that of the numbers in float32.
func TestUploadMatrix_BFloat16(t *testing.T) {
	plain, err := gobackend.New("parallelism=-1")
	require.NoError(t, err)
	defer plain.Finalize()
	const rows, columns = 5, 3
	values := make([]float32, rows*columns)
	for i := range values {
		values[i] = float32(i-7) / 4
	}
	for _, device := range []compute.Backend{graphtest.Device(t), plain} {
		w, err := UploadMatrix(device, dtypes.BFloat16, rows, columns,
			func(dst []float32, first int) { copy(dst, values[first*columns:]) })
		require.NoError(t, err)
		require.Equal(t, dtypes.BFloat16, w.DType())
		exec := newExec(t, device, func(in []*graph.Node) *graph.Node {
			return MatMulTransposed(in[1], graph.ConvertDType(in[0], dtypes.Float32))
		})
		x := []float32{1, 0.5, -2, 0, 4, 1}
		got := call[float32](t, exec, w, tensor(x, 2, columns))
		for i, y := range got {
			want := float32(0)
			for k := range columns {
				want += x[i/rows*columns+k] * values[i%rows*columns+k] // exact
			}
			require.Equal(t, want, y, "element %d", i)
		}
	}
}

func TestUploadMatrix_OtherType(t *testing.T) {
	_, err := UploadMatrix(graphtest.Device(t), dtypes.Int8, 1, 1, nil)
	require.ErrorContains(t, err, "graphx: a matrix of")
}

func TestUpload_Scalar(t *testing.T) {
	x, err := Upload(graphtest.Device(t), []float32{5})
	require.NoError(t, err)
	require.Equal(t, float32(5), tensors.ToScalar[float32](x))
}

func TestUpload_WrongShape(t *testing.T) {
	device := graphtest.Device(t)
	for _, dims := range [][]int{{}, {5}, {2, 2}, {7}, {2, 3, 2}} {
		_, err := Upload(device, make([]float32, 6), dims...)
		require.ErrorContains(t, err, "graphx: 6 values for shape", "%v", dims)
	}
}

// TestUpload_SharedByExecutions reads one tensor in many executions at once.
func TestUpload_SharedByExecutions(t *testing.T) {
	device := graphtest.Device(t)
	x, err := Upload(device, []float32{1, 2, 3}, 3)
	require.NoError(t, err)
	exec := newExec(t, device, func(in []*graph.Node) *graph.Node { return graph.Add(in[0], in[1]) })
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			out, err := exec.Call1(x, []float32{float32(i), 0, 0})
			if err != nil {
				t.Error(err)
				return
			}
			if got := tensors.MustCopyFlatData[float32](out); got[0] != float32(i+1) {
				t.Errorf("execution %d: %v", i, got)
			}
		})
	}
	wg.Wait()
}

// TestZeroTensors: also in memory that held other values before, with and without a device that has zeros of its own.
func TestZeroTensors(t *testing.T) {
	plain, err := gobackend.New("parallelism=-1")
	require.NoError(t, err)
	defer plain.Finalize()
	ones := slices.Repeat([]float32{1}, 6)
	for _, device := range []compute.Backend{graphtest.Device(t), plain} {
		used, err := Upload(device, ones, 2, 3)
		require.NoError(t, err)
		require.NoError(t, used.FinalizeAll())
		got, err := ZeroTensors(device, shapes.Make(dtypes.Float32, 2, 3), 2)
		require.NoError(t, err)
		require.Len(t, got, 2)
		for _, x := range got {
			require.Equal(t, make([]float32, 6), tensors.MustCopyFlatData[float32](x))
		}
	}
}
