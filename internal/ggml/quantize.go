package ggml

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/goart-dev/art/internal/float16"
)

// quantizers set the bytes of a block, and return its float16 scales.
//
// The blocks are those of ggml's quantize_row_*_ref to the bit, provided that these were compiled without contraction
// of floating-point operations, as gcc does for C11. Hence float32(a*b) wherever a product is added to: Go may fuse it
// otherwise. Source: https://github.com/ggml-org/llama.cpp/blob/master/ggml/src/ggml-quants.c
var quantizers = map[Type]func(b []byte, x []float32) (d, m uint16){
	Q4_0: quantizeQ4, Q5_0: quantizeQ5, Q5_1: quantizeQ5Min, Q8_0: quantizeQ8,
	Q4_K: quantizeQ4K, Q5_K: quantizeQ5K, Q6_K: quantizeQ6K,
}

// Quantizable reports whether [Type.Quantize] converts to the type.
func (t Type) Quantizable() bool { return quantizers[t] != nil || t == F32 || t == F16 }

// largest bounds what is quantized: above it scales overflow in every type, and below it no sum does.
const largest = 1e10

// Quantize sets data to the blocks of x, which has whole ones. The type must be quantizable. It is a
// [*ValueError] if x holds what the type cannot: NaN, infinities, and numbers whose scale is too large for a float16.
func (t Type) Quantize(data []byte, x []float32) error {
	for i, v := range x {
		if v-v != 0 || t != F32 && math.Abs(float64(v)) > largest {
			return &ValueError{i, v, t}
		}
	}
	switch t {
	case F32:
		for i, v := range x {
			binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(v))
		}
		return nil
	case F16:
		for i, v := range x {
			h := float16.FromFloat32(v)
			if isInfinite(h) {
				return &ValueError{i, v, t}
			}
			binary.LittleEndian.PutUint16(data[2*i:], h)
		}
		return nil
	}
	quantize, size := quantizers[t], sizes[t]
	for at := 0; at < len(x); at += size.block {
		block := x[at:][:size.block]
		if d, m := quantize(data[:size.bytes:size.bytes], block); isInfinite(d) || isInfinite(m) {
			first := absMax(block)
			return &ValueError{at + first, block[first], t}
		}
		data = data[size.bytes:]
	}
	return nil
}

// ValueError is an element that a type cannot hold.
type ValueError struct {
	Index int
	Value float32
	Type  Type
}

// Error says which it is.
func (e *ValueError) Error() string {
	return fmt.Sprintf("element %d is %v, which %v cannot hold", e.Index, e.Value, e.Type)
}

// isInfinite reports whether these are the bits of an infinite float16, or of a NaN.
func isInfinite(h uint16) bool { return h&0x7c00 == 0x7c00 }

// absMax is the index of the first element of largest magnitude.
func absMax(x []float32) int {
	at, most := 0, float32(0)
	for i, v := range x {
		if v < 0 {
			v = -v
		}
		if v > most {
			at, most = i, v
		}
	}
	return at
}
