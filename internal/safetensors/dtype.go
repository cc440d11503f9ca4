package safetensors

import (
	"fmt"
	"math/bits"
)

// DType names the type of the elements of a tensor, as the format does.
type DType string

// The types of the format. A type of less than a byte is packed; its tensors fill whole bytes.
const (
	Bool    DType = "BOOL"
	F4      DType = "F4"
	F6E2M3  DType = "F6_E2M3"
	F6E3M2  DType = "F6_E3M2"
	U8      DType = "U8"
	I8      DType = "I8"
	F8E5M2  DType = "F8_E5M2"
	F8E4M3  DType = "F8_E4M3"
	F8E8M0  DType = "F8_E8M0"
	F8E4M3Z DType = "F8_E4M3FNUZ"
	F8E5M2Z DType = "F8_E5M2FNUZ"
	I16     DType = "I16"
	U16     DType = "U16"
	F16     DType = "F16"
	BF16    DType = "BF16"
	I32     DType = "I32"
	U32     DType = "U32"
	F32     DType = "F32"
	C64     DType = "C64"
	F64     DType = "F64"
	I64     DType = "I64"
	U64     DType = "U64"
)

var dtypeBits = map[DType]uint64{
	F4: 4, F6E2M3: 6, F6E3M2: 6,
	Bool: 8, U8: 8, I8: 8, F8E5M2: 8, F8E4M3: 8, F8E8M0: 8, F8E4M3Z: 8, F8E5M2Z: 8,
	I16: 16, U16: 16, F16: 16, BF16: 16,
	I32: 32, U32: 32, F32: 32,
	C64: 64, F64: 64, I64: 64, U64: 64,
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
