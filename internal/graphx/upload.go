package graphx

import (
	"fmt"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// Upload copies float32 values to the device. A tensor that is there already can be an input of several executions at
// once; one that each of them would have to move cannot.
func Upload(device compute.Backend, data []float32, dims ...int) (*tensors.Tensor, error) {
	shape := shapes.Make(dtypes.Float32, dims...)
	if shape.Size() != len(data) {
		return nil, fmt.Errorf("graphx: %d values for shape %v", len(data), dims)
	}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), 4*len(data))
	return tensors.FromRaw(device, 0, shape, bytes)
}
