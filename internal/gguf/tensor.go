package gguf

import (
	"encoding/binary"
	"fmt"

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

// readF16 reads a float16.
func readF16(b []byte) float32 { return float16.Float32(binary.LittleEndian.Uint16(b)) }
