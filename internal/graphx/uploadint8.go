package graphx

import (
	"math"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

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
