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
// is rounded: denormals, infinities, signed zeros and the bits of NaNs are kept.
func (t Tensor) Float32s() ([]float32, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	switch t.DType {
	case F32:
		out := make([]float32, len(t.Data)/4)
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
		}
		return out, nil
	case F16:
		return t.halves(float16.Float32), nil
	case BF16:
		return t.halves(func(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }), nil
	}
	return nil, fmt.Errorf("safetensors: tensor %q is %s; only F32, F16 and BF16 convert to float32", t.Name, t.DType)
}

// halves widens elements of 16 bits.
func (t Tensor) halves(widen func(uint16) float32) []float32 {
	out := make([]float32, len(t.Data)/2)
	for i := range out {
		out[i] = widen(binary.LittleEndian.Uint16(t.Data[2*i:]))
	}
	return out
}

// check tells whether Data has the size that DType and Shape ask for.
func (t Tensor) check() error {
	size, err := byteSize(t.DType, t.Shape)
	if err != nil {
		return fmt.Errorf("safetensors: tensor %q: %w", t.Name, err)
	}
	if size != uint64(len(t.Data)) {
		return fmt.Errorf("safetensors: tensor %q: shape %v of %s needs %d bytes and there are %d", t.Name, t.Shape, t.DType, size, len(t.Data))
	}
	return nil
}
