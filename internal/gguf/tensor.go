package gguf

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/goart-dev/art/internal/float16"
)

// Tensor is a named array.
type Tensor struct {
	Name  string
	Type  Type
	Shape []int  // outermost dimension first, as everywhere but in the file
	Data  []byte // encoded as Type says; not aligned in memory
}

// Float32s converts a tensor into a new slice, row-major. Each step of a formula is rounded to float32, as in the
// reference, so the result is the same on every machine.
func (t Tensor) Float32s() ([]float32, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	l := layouts[t.Type]
	out := make([]float32, len(t.Data)/l.bytes*l.block)
	t.Read(out, 0)
	return out, nil
}

// Check returns why the tensor cannot be converted to float32: its type, or Data of another size than Type and Shape
// require.
func (t Tensor) Check() error {
	if decoders[t.Type] == nil {
		return fmt.Errorf("gguf: tensor %q is %v, which cannot be converted: "+
			"use a file of another quantization, such as Q8_0 or Q4_K_M", t.Name, t.Type)
	}
	size, err := t.Type.byteSize(t.Shape)
	if err != nil {
		return fmt.Errorf("gguf: tensor %q: %w", t.Name, err)
	}
	if size != uint64(len(t.Data)) {
		return fmt.Errorf("gguf: tensor %q: shape %v of %v needs %d bytes and there are %d", t.Name, t.Shape, t.Type, size,
			len(t.Data))
	}
	return nil
}

// Read converts len(dst) elements from element first on, as Float32s does. The tensor must pass Check, and have them.
func (t Tensor) Read(dst []float32, first int) {
	l, decode := layouts[t.Type], decoders[t.Type]
	data := t.Data[first/l.block*l.bytes:]
	var block [largestBlock]float32
	if skip := first % l.block; skip > 0 {
		decode(block[:l.block], data)
		dst, data = dst[copy(dst, block[skip:l.block]):], data[l.bytes:]
	}
	whole := len(dst) / l.block * l.block
	decode(dst[:whole], data)
	if rest := dst[whole:]; len(rest) > 0 {
		decode(block[:l.block], data[whole/l.block*l.bytes:])
		copy(rest, block[:])
	}
}

// largestBlock is the number of elements of the largest block of any type.
const largestBlock = 256

// decoders fill y with the elements of whole blocks.
var decoders = map[Type]func(y []float32, data []byte){
	F32: f32, F16: f16, BF16: bf16,
	Q4_0: blocks(Q4_0, q4_0), Q4_1: blocks(Q4_1, q4_1), Q5_0: blocks(Q5_0, q5_0), Q5_1: blocks(Q5_1, q5_1),
	Q8_0: blocks(Q8_0, q8_0),
	Q2_K: blocks(Q2_K, q2K), Q3_K: blocks(Q3_K, q3K), Q4_K: blocks(Q4_K, q4K), Q5_K: blocks(Q5_K, q5K),
	Q6_K: blocks(Q6_K, q6K),
}

// blocks returns a decoder of all blocks, given one of a single block.
func blocks(t Type, one func(y []float32, block []byte)) func(y []float32, data []byte) {
	l := layouts[t]
	return func(y []float32, data []byte) {
		for len(y) > 0 {
			one(y[:l.block:l.block], data[:l.bytes:l.bytes])
			y, data = y[l.block:], data[l.bytes:]
		}
	}
}

func readF16(b []byte) float32 { return float16.Float32(binary.LittleEndian.Uint16(b)) }

// Type is the encoding of the elements of a tensor, with ggml's number.
type Type uint32

// The types that [Tensor.Float32s] converts. Those with a Q hold blocks of integers with shared scales.
const (
	F32  Type = 0
	F16  Type = 1
	Q4_0 Type = 2
	Q4_1 Type = 3
	Q5_0 Type = 6
	Q5_1 Type = 7
	Q8_0 Type = 8
	Q2_K Type = 10
	Q3_K Type = 11
	Q4_K Type = 12
	Q5_K Type = 13
	Q6_K Type = 14
	BF16 Type = 30
)

type layout struct {
	name  string
	block int // elements of a block
	bytes int // of a block
}

// layouts are the types that a file may have. Of those that this package cannot convert only the size is used.
var layouts = map[Type]layout{
	F32: {"F32", 1, 4}, F16: {"F16", 1, 2}, BF16: {"BF16", 1, 2},
	Q4_0: {"Q4_0", 32, 18}, Q4_1: {"Q4_1", 32, 20}, Q5_0: {"Q5_0", 32, 22}, Q5_1: {"Q5_1", 32, 24}, Q8_0: {"Q8_0", 32, 34},
	Q2_K: {"Q2_K", 256, 84}, Q3_K: {"Q3_K", 256, 110}, Q4_K: {"Q4_K", 256, 144}, Q5_K: {"Q5_K", 256, 176},
	Q6_K: {"Q6_K", 256, 210},
	9:    {"Q8_1", 32, 40}, 15: {"Q8_K", 256, 292},
	16: {"IQ2_XXS", 256, 66}, 17: {"IQ2_XS", 256, 74}, 18: {"IQ3_XXS", 256, 98}, 19: {"IQ1_S", 256, 50},
	20: {"IQ4_NL", 32, 18},
	21: {"IQ3_S", 256, 110}, 22: {"IQ2_S", 256, 82}, 23: {"IQ4_XS", 256, 136}, 29: {"IQ1_M", 256, 56},
	24: {"I8", 1, 1}, 25: {"I16", 1, 2}, 26: {"I32", 1, 4}, 27: {"I64", 1, 8}, 28: {"F64", 1, 8},
	34: {"TQ1_0", 256, 54}, 35: {"TQ2_0", 256, 66}, 39: {"MXFP4", 32, 17}, 40: {"NVFP4", 64, 36}, 41: {"Q1_0", 128, 18},
}

// String returns ggml's name.
func (t Type) String() string {
	if l, ok := layouts[t]; ok {
		return l.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// byteSize returns how many bytes a tensor occupies. Rows, along the innermost dimension, consist of whole blocks.
func (t Type) byteSize(shape []int) (uint64, error) {
	l, ok := layouts[t]
	if !ok {
		return 0, fmt.Errorf("unknown %v", t)
	}
	row := 1
	if len(shape) > 0 {
		row = shape[len(shape)-1]
	}
	if row%l.block != 0 {
		return 0, fmt.Errorf("rows of %d are not whole blocks of %d, which %v has", row, l.block, t)
	}
	elements := uint64(4) // times four: their size as float32 does not overflow
	for _, dim := range shape {
		high, low := bits.Mul64(elements, uint64(dim)) //nolint:gosec // it is not negative
		if high != 0 || low > 1<<62 {
			return 0, fmt.Errorf("shape %v overflows", shape)
		}
		elements = low
	}
	high, size := bits.Mul64(elements/4/uint64(l.block), uint64(l.bytes))
	if high != 0 {
		return 0, fmt.Errorf("shape %v of %v overflows", shape, t)
	}
	return size, nil
}
