package ggml

import "encoding/binary"

// halves are the positions of the float16 numbers in a block.
var halves = map[Type][]int{
	Q4_0: {0}, Q4_1: {0, 2}, Q5_0: {0}, Q5_1: {0, 2}, Q8_0: {0}, Q2_K: {80, 82}, Q3_K: {108}, Q4_K: {0, 2},
	Q5_K: {0, 2}, Q6_K: {208}, IQ4_NL: {0}, IQ4_XS: {0},
}

// Finite reports whether the scales of blocks of a quantized type are numbers, and so are the elements: a scale that is
// infinite or NaN makes elements so, and one of MXFP4 above 2^125 may.
func (t Type) Finite(blocks []byte) bool {
	const exponent, mostE8M0 = 0x7c00, 252
	size := sizes[t].bytes
	if t == MXFP4 {
		for at := 0; at < len(blocks); at += size {
			if blocks[at] > mostE8M0 {
				return false
			}
		}
	}
	for _, at := range halves[t] {
		for ; at < len(blocks); at += size {
			if binary.LittleEndian.Uint16(blocks[at:])&exponent == exponent {
				return false
			}
		}
	}
	return true
}
