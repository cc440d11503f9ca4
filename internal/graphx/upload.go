package graphx

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/ggml"
)

// Upload copies float32 values to the device. A tensor on the device can be an input of several concurrent executions;
// one that each of them would have to upload cannot.
func Upload(device compute.Backend, data []float32, dims ...int) (*tensors.Tensor, error) {
	shape := shapes.Make(dtypes.Float32, dims...)
	if shape.Size() != len(data) {
		return nil, fmt.Errorf("graphx: %d values for shape %v", len(data), dims)
	}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), 4*len(data))
	return tensors.FromRaw(device, 0, shape, bytes)
}

// Packer is a device that can store a matrix in the order in which its matmuls read memory. Graphs take the buffer like
// any other of its shape; the device documents which operations accept it.
type Packer interface {
	// Pack makes the buffer of a matrix of float32 or bfloat16. read fills dst with rows from row first on; it
	// may be called by several goroutines at once.
	Pack(shape shapes.Shape, read func(dst []float32, first int)) (compute.Buffer, error)
}

// QuantizedPacker is a [Packer] that can store the blocks of a quantized type of ggml, or float16 numbers, and
// multiplies by the float32 numbers that they stand for. With rounds, the products of rows with a quantized matrix
// round these to 8 bits; the gradient of the rows is the product without rounding.
type QuantizedPacker interface {
	PackQuantized(t ggml.Type, rows, columns int, rounds bool, row func(i int) []byte) (compute.Buffer, error)
	// QuantizedBytes is what a matrix takes; false: it is not stored like that.
	QuantizedBytes(t ggml.Type, rows, columns int) (int, bool)
}

// UploadMatrix copies a matrix [rows, columns] to the device, packed if the device is a [Packer]. kind is float32, or
// bfloat16, to which its elements are rounded. Graphs convert a bfloat16 matrix to float32 first; the CPU device fuses
// that into the matmul, with the same bits.
func UploadMatrix(
	device compute.Backend, kind dtypes.DType, rows, columns int, read func(dst []float32, first int),
) (*tensors.Tensor, error) {
	if kind != dtypes.Float32 && kind != dtypes.BFloat16 {
		return nil, fmt.Errorf("graphx: a matrix of %s: want %s or %s", kind, dtypes.Float32, dtypes.BFloat16)
	}
	shape := shapes.Make(kind, rows, columns)
	if packer, ok := device.(Packer); ok {
		buffer, err := packer.Pack(shape, read)
		if err != nil {
			return nil, fmt.Errorf("graphx: %w", err)
		}
		return tensors.FromBuffer(buffer)
	}
	data := make([]float32, rows*columns)
	read(data, 0)
	if kind == dtypes.Float32 {
		return Upload(device, data, rows, columns)
	}
	rounded := bfloat16.FromFloat32s(data...)
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(rounded))), 2*len(rounded))
	return tensors.FromRaw(device, 0, shape, bytes)
}

// int8Elements is the number of elements that are in memory in float32 at once.
const int8Elements = 1 << 20

// UploadInt8 copies a matrix [rows, columns] to the device in int8, with a scale for each row, [rows] float32: the
// largest magnitude of the row divided by 127. An element is about its scale times its int8, rounded to even. read
// fills dst with rows from row first on.
func UploadInt8(
	device compute.Backend, rows, columns int, read func(dst []float32, first int),
) (matrix, scales *tensors.Tensor, err error) {
	whole, each := make([]int8, rows*columns), make([]float32, rows)
	some := max(1, int8Elements/columns)
	part := make([]float32, min(some, rows)*columns)
	for first := 0; first < rows; first += some {
		part = part[:min(some, rows-first)*columns]
		read(part, first)
		for i := range len(part) / columns {
			at := i * columns
			each[first+i] = quantize(whole[first*columns+at:], part[at:at+columns])
		}
	}
	if scales, err = Upload(device, each, rows); err != nil {
		return nil, nil, err
	}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(whole))), len(whole))
	if matrix, err = tensors.FromRaw(device, 0, shapes.Make(dtypes.Int8, rows, columns), bytes); err != nil {
		_ = scales.FinalizeAll() // the first error is the one to report
		return nil, nil, err
	}
	return matrix, scales, nil
}

// quantize writes a row as multiples of its scale, which it returns.
func quantize(to []int8, row []float32) (scale float32) {
	for _, x := range row {
		scale = max(scale, float32(math.Abs(float64(x))))
	}
	scale /= math.MaxInt8
	if scale == 0 {
		return 0 // to is zero
	}
	for i, x := range row {
		to[i] = int8(math.RoundToEven(float64(x) / float64(scale)))
	}
	return scale
}

// RoundInt8 replaces a row by what a device has of it after [UploadInt8].
func RoundInt8(row []float32) {
	to := make([]int8, len(row))
	scale := quantize(to, row)
	for i, q := range to {
		row[i] = scale * float32(q)
	}
}

// zeroer is a device that has tensors of zeros without writing them.
type zeroer interface {
	Zeros(shape shapes.Shape) (compute.Buffer, error)
}

// ZeroTensors returns n tensors of zeros on the device.
func ZeroTensors(device compute.Backend, shape shapes.Shape, n int) ([]*tensors.Tensor, error) {
	if z, ok := device.(zeroer); ok {
		out := make([]*tensors.Tensor, n)
		for i := range out {
			b, err := z.Zeros(shape)
			if err != nil {
				return nil, fmt.Errorf("graphx: %w", err)
			}
			if out[i], err = tensors.FromBuffer(b); err != nil {
				return nil, fmt.Errorf("graphx: %w", err)
			}
		}
		return out, nil
	}
	exec, err := graph.NewExec(device, func(g *graph.Graph) []*graph.Node {
		out := make([]*graph.Node, n)
		for i := range out {
			out[i] = graph.Zeros(g, shape)
		}
		return out
	})
	if err != nil {
		return nil, fmt.Errorf("graphx: %w", err)
	}
	defer exec.Finalize()
	return exec.Call()
}
