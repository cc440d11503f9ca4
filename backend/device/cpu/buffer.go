package cpu

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
)

// buffer is a tensor in the memory of the process, rows first unless it is packed.
type buffer struct {
	device *Device
	shape  shapes.Shape
	packed *gemm.Packed // in mem; nil for rows first
	mu     sync.Mutex
	mem    memory.Span // zero when finalized
}

var _ compute.Buffer = (*buffer)(nil)

var errFinalized = errors.New("cpu: the buffer is finalized, or was donated")

func (d *Device) newBuffer(shape shapes.Shape) *buffer {
	return &buffer{device: d, shape: shape, mem: d.env.Memory.Alloc(bytesOf(shape))}
}

// bytesOf is the size of a tensor.
func bytesOf(s shapes.Shape) int { return s.Size() * s.DType.Size() }

// BufferFromFlatData copies a slice to a new buffer.
func (d *Device) BufferFromFlatData(_ compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	if err := supported(shape); err != nil {
		return nil, err
	}
	data, err := bytesFor(flat, shape)
	if err != nil {
		return nil, err
	}
	b := d.newBuffer(shape)
	copy(memory.Bytes(b.mem.Base, len(data)), data)
	return b, nil
}

// bytesFor returns the memory of a slice that holds a tensor of shape.
func bytesFor(flat any, shape shapes.Shape) ([]byte, error) {
	if t := reflect.TypeOf(flat); t != nil && (t.Kind() != reflect.Slice || t.Elem() != shape.DType.GoType()) {
		return nil, fmt.Errorf("cpu: a %T for a tensor of %s; it takes a []%s", flat, shape, shape.DType.GoStr())
	}
	data := dtypes.UnsafeByteSliceFromAny(flat)
	if len(data) != bytesOf(shape) {
		return nil, fmt.Errorf("cpu: %d bytes of data for a tensor of %s, which has %d", len(data), shape, bytesOf(shape))
	}
	return data, nil
}

// HasSharedBuffers is true: a buffer is memory of the process.
func (d *Device) HasSharedBuffers() bool { return true }

// NewSharedBuffer returns a buffer of zeros, and its memory.
func (d *Device) NewSharedBuffer(_ compute.DeviceNum, shape shapes.Shape) (compute.Buffer, any, error) {
	if err := supported(shape); err != nil {
		return nil, nil, err
	}
	b := &buffer{device: d, shape: shape, mem: d.env.Memory.Zeros(bytesOf(shape))}
	flat, err := b.Data()
	return b, flat, err
}

// Zeros returns a buffer of zeros. The system provides its memory when it is first touched, where it can: a KV cache
// takes memory as it fills.
func (d *Device) Zeros(shape shapes.Shape) (compute.Buffer, error) {
	b, _, err := d.NewSharedBuffer(0, shape)
	return b, err
}

// supported returns an error for a shape that the device cannot hold.
func supported(s shapes.Shape) error {
	if !ir.DataTypes[s.DType] || s.IsTuple() || s.IsDynamic() {
		return fmt.Errorf("cpu: tensors of %s are not supported", s)
	}
	return nil
}

// Backend returns the device.
func (b *buffer) Backend() compute.Backend { return b.device }

// Finalize gives the memory back.
func (b *buffer) Finalize() error {
	if mem := b.take(); mem.Base != nil {
		b.device.env.Memory.Release(mem)
	}
	return nil
}

// take empties the buffer and returns its memory.
func (b *buffer) take() memory.Span {
	b.mu.Lock()
	defer b.mu.Unlock()
	mem := b.mem
	b.mem = memory.Span{}
	return mem
}

// span returns the memory.
func (b *buffer) span() (memory.Span, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mem.Base == nil {
		return memory.Span{}, errFinalized
	}
	return b.mem, nil
}

// Shape of the tensor.
func (b *buffer) Shape() (shapes.Shape, error) { return b.shape, nil }

// DeviceNum is 0.
func (b *buffer) DeviceNum() (compute.DeviceNum, error) { return 0, nil }

// ToFlatData copies the tensor to a slice of its type and size.
func (b *buffer) ToFlatData(flat any) error {
	mem, err := b.span()
	if err != nil {
		return err
	}
	dst, err := bytesFor(flat, b.shape)
	if err != nil {
		return err
	}
	switch {
	case b.packed != nil && b.shape.DType == dtypes.BFloat16:
		unpackBF16(memory.Slice[bfloat16.BFloat16](memory.Pointer(dst), b.shape.Size()), b.packed)
		return nil
	case b.packed != nil:
		unpack(memory.Slice[float32](memory.Pointer(dst), b.shape.Size()), b.packed)
		return nil
	}
	copy(dst, memory.Bytes(mem.Base, len(dst)))
	return nil
}

// Data returns the memory of the tensor, valid until the buffer is finalized or donated. A packed one has none that
// could be shown.
func (b *buffer) Data() (any, error) {
	if b.packed != nil {
		return nil, fmt.Errorf("cpu: the buffer of %s is packed; copy it with ToFlatData", b.shape)
	}
	mem, err := b.span()
	if err != nil {
		return nil, err
	}
	return dtypes.UnsafeAnySliceFromBytes(mem.Base, b.shape.DType, b.shape.Size()), nil
}

// CopyToDevice copies the buffer; there is one device.
func (b *buffer) CopyToDevice(n compute.DeviceNum) (compute.Buffer, error) {
	mem, err := b.span()
	if err != nil {
		return nil, err
	}
	if n != 0 {
		return nil, fmt.Errorf("cpu: there is no device %d, only 0", n)
	}
	c := &buffer{device: b.device, shape: b.shape, mem: b.device.env.Memory.Alloc(mem.Size)}
	copy(memory.Bytes(c.mem.Base, mem.Size), memory.Bytes(mem.Base, mem.Size))
	switch {
	case b.packed != nil && b.packed.IsQuantized():
		c.packed = b.packed.In(memory.Bytes(c.mem.Base, mem.Size))
	case b.packed != nil:
		c.packed = packedAt(c.mem, b.shape)
	}
	return c, nil
}
