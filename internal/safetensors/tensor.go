package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

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

// DType names the type of the elements of a tensor, as the format does.
type DType string

// The types that convert to float32, and I32.
const (
	F16  DType = "F16"
	BF16 DType = "BF16"
	F32  DType = "F32"
	I32  DType = "I32"
)

// dtypeBits are the types of the format. A type of less than a byte is packed; its tensors fill whole bytes.
var dtypeBits = map[DType]uint64{
	"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
	"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
	"I16": 16, "U16": 16, F16: 16, BF16: 16, I32: 32, "U32": 32, F32: 32,
	"C64": 64, "F64": 64, "I64": 64, "U64": 64,
}

// Bits returns the size of one element in bits, 0 for a type that the format does not have.
func (d DType) Bits() int { return int(dtypeBits[d]) }

// byteSize returns how many bytes a tensor occupies. The product of its dimensions is checked for overflow.
func byteSize(d DType, shape []int) (uint64, error) {
	size, ok := dtypeBits[d]
	if !ok {
		return 0, fmt.Errorf("unknown dtype %q", d)
	}
	if len(shape) > MaxRank {
		return 0, fmt.Errorf("%d dimensions, more than %d", len(shape), MaxRank)
	}
	for _, dim := range shape {
		if dim < 0 {
			return 0, fmt.Errorf("shape %v has a negative dimension", shape)
		}
		high, low := bits.Mul64(size, uint64(dim))
		if high != 0 {
			return 0, fmt.Errorf("shape %v of %s overflows", shape, d)
		}
		size = low
	}
	if size%8 != 0 {
		return 0, fmt.Errorf("shape %v of %s does not fill whole bytes", shape, d)
	}
	return size / 8, nil
}
