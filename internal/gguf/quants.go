package gguf

import (
	"encoding/binary"
	"math"
)

// Unquantized types.

func f32(y []float32, data []byte) {
	for i := range y {
		y[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
}

func f16(y []float32, data []byte) {
	for i := range y {
		y[i] = readF16(data[2*i:])
	}
}

// bf16: a bfloat16 is the upper half of a float32.
func bf16(y []float32, data []byte) {
	for i := range y {
		y[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
	}
}

// Blocks of 32. d and m are float16, q are unsigned whole numbers; element j has its four low bits in the low nibble of
// byte j, element 16+j in the high nibble.
//
//	Q4_0   d, q[32] of 4 bits                           y = d (q - 8)
//	Q4_1   d, m, q[32] of 4 bits                        y = d q + m
//	Q5_0   d, 32 fifth bits, q[32] of 4 bits            y = d (q - 16)
//	Q5_1   d, m, 32 fifth bits, q[32] of 4 bits         y = d q + m
//	Q8_0   d, q[32] of 8 bits, signed                   y = d q
//
// Source: block_q4_0 and following, https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h

func q4_0(y []float32, b []byte) {
	d := readF16(b)
	for j, q := range b[2:] {
		y[j] = d * float32(int(q&15)-8)
		y[j+16] = d * float32(int(q>>4)-8)
	}
}

func q4_1(y []float32, b []byte) {
	d, m := readF16(b), readF16(b[2:])
	for j, q := range b[4:] {
		y[j] = float32(d*float32(q&15)) + m
		y[j+16] = float32(d*float32(q>>4)) + m
	}
}

func q5_0(y []float32, b []byte) {
	d, fifth := readF16(b), binary.LittleEndian.Uint32(b[2:])
	for j, q := range b[6:] {
		y[j] = d * float32(int(uint32(q&15)|bit(fifth, j)<<4)-16)
		y[j+16] = d * float32(int(uint32(q>>4)|bit(fifth, j+16)<<4)-16)
	}
}

func q5_1(y []float32, b []byte) {
	d, m, fifth := readF16(b), readF16(b[2:]), binary.LittleEndian.Uint32(b[4:])
	for j, q := range b[8:] {
		y[j] = float32(d*float32(uint32(q&15)|bit(fifth, j)<<4)) + m
		y[j+16] = float32(d*float32(uint32(q>>4)|bit(fifth, j+16)<<4)) + m
	}
}

func bit(bits uint32, i int) uint32 { return bits >> i & 1 }

func q8_0(y []float32, b []byte) {
	d := readF16(b)
	for j, q := range b[2:] {
		y[j] = d * float32(int8(q)) //nolint:gosec // the bits of a signed number
	}
}
