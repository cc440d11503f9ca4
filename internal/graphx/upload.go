package graphx

import (
	"fmt"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
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
