package cpu

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/exec"
	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
	"github.com/goart-dev/art/internal/ggml"
)

// Pack returns a buffer of a matrix [rows, columns] of float32 or bfloat16, in the order in which matmuls with it read
// memory, which is faster than rows first. That is the only copy: read gives rows from the first one on, as many as dst
// holds, and may be called by several goroutines at once. Those of bfloat16 are rounded to the nearest.
//
// Graphs take such a buffer like any other, where they only gather rows of it or multiply by it, from the right, as it
// is or transposed; one of bfloat16 is converted to float32 before. Anything else is an error of Execute. A matrix that
// such a buffer could not be of has its rows first.
func (d *Device) Pack(shape shapes.Shape, read func(dst []float32, first int)) (compute.Buffer, error) {
	if !ir.CanPack(shape) {
		return nil, fmt.Errorf("cpu: only matrices of float32 and bfloat16 are packed, not %s", shape)
	}
	rows, columns := shape.Dimensions[0], shape.Dimensions[1]
	if rows < 2 || columns < 2 {
		return d.rowsFirst(shape, read), nil
	}
	b := &buffer{device: d, shape: shape, mem: d.env.Memory.Alloc(shape.DType.Size() * gemm.PackedSize(columns, rows))}
	b.packed = packedAt(b.mem, shape)
	d.env.Pool.For((rows+packRows-1)/packRows, func(i int) {
		first := i * packRows
		n := min(packRows, rows-first)
		space := d.env.Memory.Alloc(4 * packRows * columns)
		defer d.env.Memory.Release(space)
		part := memory.Slice[float32](space.Base, n*columns)
		read(part, first)
		if shape.DType == dtypes.BFloat16 {
			half := make([]uint16, len(part))
			vec.ToBfloat16(b.device.env.Level, half, part)
			gemm.PackBF16(nil, b.packed, first, gemm.ViewBF16{Data: half, Row: 1, Col: b.packed.K}, n)
			return
		}
		d.env.Kernels.Pack(nil, b.packed, first, gemm.View{Data: part, Row: 1, Col: columns}, n)
	})
	return b, nil
}

// PackQuantized returns a buffer of a float32 matrix [rows, columns] that keeps the integers and scales of a quantized
// type, or float16 numbers: graphs take it as one of [Device.Pack], and compute with the float32 numbers that the type
// stands for, with their bits. row(i) is row i in blocks of the type, read by several goroutines at once. A scale that
// is infinite or NaN is an error, and so is a matrix that [Device.QuantizedBytes] does not know.
//
// With rounds, and a quantized type, a matmul x·Wᵀ rounds each row of x to 8 bits for 32 numbers, with a scale of a
// 127th of the largest of them, and adds up products of integers: about 2.5 times as fast with many rows, with an error
// of a 254th of the largest number at most in each. A matmul y·W, which is the gradient of x, does not round. The bits
// are the same whatever the rows beside one, the workers and the instruction set.
func (d *Device) PackQuantized(
	t ggml.Type, rows, columns int, rounds bool, row func(i int) []byte,
) (compute.Buffer, error) {
	size, ok := gemm.QuantizedBytes(t, columns, rows)
	if !ok {
		return nil, fmt.Errorf("cpu: a [%d, %d] matrix of %v is not packed as it is", rows, columns, t)
	}
	b := &buffer{device: d, shape: shapes.Make(dtypes.Float32, rows, columns), mem: d.env.Memory.Alloc(size)}
	b.packed = gemm.NewQuantized(t, memory.Bytes(b.mem.Base, size), columns, rows)
	b.packed.Int8 = rounds && t != ggml.F16
	if err := gemm.PackQuantized(d.env.Pool, b.packed, 0, t, row, rows); err != nil {
		return nil, errors.Join(fmt.Errorf("cpu: %w", err), b.Finalize())
	}
	return b, nil
}

// QuantizedBytes is what a matrix of a quantized type takes on the device; false: its numbers are kept in float32.
func (d *Device) QuantizedBytes(t ggml.Type, rows, columns int) (int, bool) {
	return gemm.QuantizedBytes(t, columns, rows)
}

// packedAt returns the packed matrix of a shape that lies in mem.
func packedAt(mem memory.Span, s shapes.Shape) *gemm.Packed {
	rows, columns := s.Dimensions[0], s.Dimensions[1]
	size := gemm.PackedSize(columns, rows)
	if s.DType == dtypes.BFloat16 {
		return gemm.NewPacked(memory.Slice[uint16](mem.Base, size), columns, rows)
	}
	return gemm.NewPacked(memory.Slice[float32](mem.Base, size), columns, rows)
}

// rowsFirst returns a buffer that is not packed.
func (d *Device) rowsFirst(shape shapes.Shape, read func(dst []float32, first int)) *buffer {
	b, n := d.newBuffer(shape), shape.Size()
	if shape.DType == dtypes.Float32 {
		read(memory.Slice[float32](b.mem.Base, n), 0)
		return b
	}
	rows := make([]float32, n)
	read(rows, 0)
	exec.RoundBF16(memory.Slice[bfloat16.BFloat16](b.mem.Base, n), rows)
	return b
}

// packRows are the rows that are read at once: whole panels.
const packRows = 128

// unpack writes the rows of a packed matrix one after another.
func unpack(dst []float32, p *gemm.Packed) {
	for j := range p.N {
		p.Column(dst[j*p.K:][:p.K], j)
	}
}

// unpackBF16 writes the rows of a packed matrix of bfloat16 one after another.
func unpackBF16(dst []bfloat16.BFloat16, p *gemm.Packed) {
	row := make([]float32, p.K)
	for j := range p.N {
		p.Column(row, j)
		exec.RoundBF16(dst[j*p.K:][:p.K], row)
	}
}
