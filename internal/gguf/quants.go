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

// Super-blocks of 256, in parts of 16 or 32 with a scale each. d and dmin are float16, s and m are small integers, q
// are unsigned.
//
//	Q2_K   16 bytes (m<<4 | s), q[256] of 2 bits, d, dmin                     y = d s q - dmin m
//	Q3_K   third bits [256], q[256] of 2 bits, s[16] of 6 bits, d             y = d (s - 32) (q - 4)
//	Q4_K   d, dmin, s[8] and m[8] of 6 bits, q[256] of 4 bits                 y = d s q - dmin m
//	Q5_K   d, dmin, s[8] and m[8] of 6 bits, fifth bits, q[256] of 4 bits     y = d s q - dmin m
//	Q6_K   q[256] of 4 bits, two upper bits, s[16] of 8 bits, signed, d       y = d s (q - 32)
//
// Source: block_q2_K and following, https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h

// q2K: each half of the block has 32 bytes. Their bits 0 and 1 are its first 32 elements, bits 2 and 3 the next, ...
func q2K(y []float32, b []byte) {
	scales, qs, d, dmin := b[:16], b[16:80], readF16(b[80:]), readF16(b[82:])
	for part := range 16 {
		s, m := d*float32(scales[part]&15), dmin*float32(scales[part]>>4)
		at, shift := twoBits(part)
		for l, q := range qs[at : at+16] {
			y[16*part+l] = float32(s*float32(q>>shift&3)) - m
		}
	}
}

// twoBits returns the position of the two low bits of a part of 16 elements: the first of 16 bytes, and the shift.
func twoBits(part int) (at, shift int) { return part/8*32 + part%2*16, part % 8 / 2 * 2 }

func q3K(y []float32, b []byte) {
	thirds, qs, scales, d := b[:32], b[32:96], b[96:108], readF16(b[108:])
	for part := range 16 {
		s := d * float32(scale3(scales, part)-32)
		at, shift := twoBits(part)
		for l, q := range qs[at : at+16] {
			third := thirds[part%2*16+l] >> (part / 2) & 1 // bit n of byte l is that of element 32n+l
			y[16*part+l] = s * float32(int(q>>shift&3|third<<2)-4)
		}
	}
}

// scale3 returns a scale of Q3_K: four bits of the first 8 bytes, low nibbles first, and two bits of the last 4.
func scale3(scales []byte, i int) int {
	low := scales[i%8] >> (i / 8 * 4) & 15
	high := scales[8+i%4] >> (i / 4 * 2) & 3
	return int(low | high<<4)
}

func q4K(y []float32, b []byte) {
	d, dmin, scales, qs := readF16(b), readF16(b[2:]), b[4:16], b[16:]
	for part := range 8 {
		s, m := scale4(scales, part)
		ds, dm := d*float32(s), dmin*float32(m)
		for l, q := range qs[part/2*32 : part/2*32+32] { // low nibbles, then high nibbles
			y[32*part+l] = float32(ds*float32(q>>(part%2*4)&15)) - dm
		}
	}
}

func q5K(y []float32, b []byte) {
	d, dmin, scales, fifths, qs := readF16(b), readF16(b[2:]), b[4:16], b[16:48], b[48:]
	for part := range 8 {
		s, m := scale4(scales, part)
		ds, dm := d*float32(s), dmin*float32(m)
		for l, q := range qs[part/2*32 : part/2*32+32] {
			fifth := fifths[l] >> part & 1 // bit n of byte l is that of element 32n+l
			y[32*part+l] = float32(ds*float32(q>>(part%2*4)&15|fifth<<4)) - dm
		}
	}
}

// scale4 returns a scale and a minimum of Q4_K and Q5_K. The first four of each are the low six bits of the bytes 0 to
// 3 and 4 to 7. The others have four bits in the bytes 8 to 11, and two in the upper bits of the others.
func scale4(scales []byte, i int) (s, m byte) {
	if i < 4 {
		return scales[i] & 63, scales[i+4] & 63
	}
	return scales[i+4]&15 | scales[i-4]>>6<<4, scales[i+4]>>4 | scales[i]>>6<<4
}

// q6K: each half of the block has 64 bytes of low and 32 of upper bits. Its four parts of 32 elements have their low
// bits in the low nibbles of bytes 0 to 31 and 32 to 63, then in the high nibbles; their upper bits in bits 0 and 1
// of the bytes, in bits 2 and 3, ...
func q6K(y []float32, b []byte) {
	low, upper, scales, d := b[:128], b[128:192], b[192:208], readF16(b[208:])
	for part := range 8 {
		part4, at := part%4, part/4
		lows, uppers := low[at*64+part4%2*32:], upper[at*32:]
		for l := range 32 {
			q := lows[l]>>(part4/2*4)&15 | uppers[l]>>(part4*2)&3<<4
			s := d * float32(int8(scales[part*2+l/16])) //nolint:gosec // the bits of a signed number
			y[32*part+l] = s * float32(int(q)-32)
		}
	}
}
