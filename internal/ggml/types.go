// Package ggml has the types in which ggml stores numbers: their sizes, and what each number is.
//
// A quantized block is integers of a few bits with scales. Taken apart ([Type.Split]) all of them have one form:
//
//	y[i] = d·s[g]·t[q[i]] − m·n[g]        g = i/group
//
// with float16 d and m, small integers s and n, and a table t of the codes q. Products are exact in float32, since they
// have at most 24 bits, so an element is rounded once at most, and equals that of Python's gguf to the bit.
//
// Source: https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h and gguf-py's quants.py.
package ggml

import (
	"fmt"
	"math/bits"
)

// Type is the encoding of the elements of a tensor, with ggml's number.
type Type uint32

// The types that are converted. Those with a Q hold blocks of integers with shared scales, and so do IQ4 and MXFP4,
// whose codes stand for the numbers of a table.
const (
	F32    Type = 0
	F16    Type = 1
	Q4_0   Type = 2
	Q4_1   Type = 3
	Q5_0   Type = 6
	Q5_1   Type = 7
	Q8_0   Type = 8
	Q2_K   Type = 10
	Q3_K   Type = 11
	Q4_K   Type = 12
	Q5_K   Type = 13
	Q6_K   Type = 14
	IQ4_NL Type = 20
	IQ4_XS Type = 23
	BF16   Type = 30
	MXFP4  Type = 39
)

// size is how a type is stored.
type size struct {
	name  string
	block int // elements of a block
	bytes int // of a block
}

// sizes are the types that a file may have. Of those that this package cannot convert only the size is used.
var sizes = map[Type]size{
	F32: {"F32", 1, 4}, F16: {"F16", 1, 2}, BF16: {"BF16", 1, 2},
	Q4_0: {"Q4_0", 32, 18}, Q4_1: {"Q4_1", 32, 20}, Q5_0: {"Q5_0", 32, 22}, Q5_1: {"Q5_1", 32, 24}, Q8_0: {"Q8_0", 32, 34},
	Q2_K: {"Q2_K", 256, 84}, Q3_K: {"Q3_K", 256, 110}, Q4_K: {"Q4_K", 256, 144}, Q5_K: {"Q5_K", 256, 176},
	Q6_K: {"Q6_K", 256, 210}, IQ4_NL: {"IQ4_NL", 32, 18}, IQ4_XS: {"IQ4_XS", 256, 136}, MXFP4: {"MXFP4", 32, 17},
	9: {"Q8_1", 32, 40}, 15: {"Q8_K", 256, 292},
	16: {"IQ2_XXS", 256, 66}, 17: {"IQ2_XS", 256, 74}, 18: {"IQ3_XXS", 256, 98}, 19: {"IQ1_S", 256, 50},
	21: {"IQ3_S", 256, 110}, 22: {"IQ2_S", 256, 82}, 29: {"IQ1_M", 256, 56},
	24: {"I8", 1, 1}, 25: {"I16", 1, 2}, 26: {"I32", 1, 4}, 27: {"I64", 1, 8}, 28: {"F64", 1, 8},
	34: {"TQ1_0", 256, 54}, 35: {"TQ2_0", 256, 66}, 40: {"NVFP4", 64, 36}, 41: {"Q1_0", 128, 18},
}

// String returns ggml's name.
func (t Type) String() string {
	if l, ok := sizes[t]; ok {
		return l.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// MaxBlock is the number of elements of the largest block.
const MaxBlock = 256

// Block is the number of elements of a block, 0 for an unknown type.
func (t Type) Block() int { return sizes[t].block }

// Bytes is the number of bytes of n elements, which are whole blocks.
func (t Type) Bytes(n int) int { return n / sizes[t].block * sizes[t].bytes }

// Size returns how many bytes a tensor occupies. Rows, along the innermost dimension, consist of whole blocks.
func (t Type) Size(shape []int) (uint64, error) {
	l, ok := sizes[t]
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
	elements, err := numElements(shape)
	if err != nil {
		return 0, err
	}
	high, size := bits.Mul64(elements/uint64(l.block), uint64(l.bytes))
	if high != 0 {
		return 0, fmt.Errorf("shape %v of %v overflows", shape, t)
	}
	return size, nil
}

// numElements returns the number of elements of a shape. Their size as float32 does not overflow.
func numElements(shape []int) (uint64, error) {
	elements := uint64(4)
	for _, dim := range shape {
		high, low := bits.Mul64(elements, uint64(dim)) //nolint:gosec // it is not negative
		if high != 0 || low > 1<<62 {
			return 0, fmt.Errorf("shape %v overflows", shape)
		}
		elements = low
	}
	return elements / 4, nil
}
