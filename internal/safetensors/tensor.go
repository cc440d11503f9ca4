package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/goart-dev/art/internal/float16"
)

// Tensor is a named array.
type Tensor struct {
	Name  string
	DType DType
	Shape []int  // outermost dimension first; empty for a scalar
	Data  []byte // row-major, little-endian; not aligned in memory
}

// NewFloat32 returns an F32 tensor with a copy of values. A shape that does not fit them is an error of [Write].
func NewFloat32(name string, shape []int, values []float32) Tensor {
	data := make([]byte, 4*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(v))
	}
	return Tensor{Name: name, DType: F32, Shape: shape, Data: data}
}

// Float32s converts an F32, F16 or BF16 tensor into a new slice. Each value of these types is a float32, so nothing
// is rounded: subnormals, infinities, signed zeros and the bits of NaNs are kept.
func (t Tensor) Float32s() ([]float32, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	out := make([]float32, len(t.Data)*8/t.DType.Bits())
	t.Read(out, 0)
	return out, nil
}

// Read converts len(dst) elements from element first on, as Float32s does. The tensor must pass Check, and have them.
func (t Tensor) Read(dst []float32, first int) {
	data := t.Data[first*t.DType.Bits()/8:]
	switch t.DType {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
	case F16:
		for i := range dst {
			dst[i] = float16.Float32(binary.LittleEndian.Uint16(data[2*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
		}
	}
}

// Check returns why the tensor cannot be converted to float32: its type, or Data of another size than DType and Shape
// require.
func (t Tensor) Check() error {
	if err := t.check(); err != nil {
		return err
	}
	if t.DType != F32 && t.DType != F16 && t.DType != BF16 {
		return fmt.Errorf("safetensors: tensor %q is %s; only F32, F16 and BF16 convert to float32", t.Name, t.DType)
	}
	return nil
}

// check reports Data of another size than DType and Shape require.
func (t Tensor) check() error {
	size, err := byteSize(t.DType, t.Shape)
	if err != nil {
		return fmt.Errorf("safetensors: tensor %q: %w", t.Name, err)
	}
	if size != uint64(len(t.Data)) {
		return fmt.Errorf("safetensors: tensor %q: shape %v of %s needs %d bytes and there are %d", t.Name, t.Shape, t.DType,
			size, len(t.Data))
	}
	return nil
}
