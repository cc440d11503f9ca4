package ggml

import (
	"encoding/binary"
	"math"

	"github.com/goart-dev/art/internal/float16"
)

// Blocks of 32. A scale so small that its reciprocal is infinite becomes 0 as a float16; its codes are 0 then.

// quantizeQ4: the element of largest magnitude gets the code 0, which stands for -8.
func quantizeQ4(b []byte, x []float32) (d, m uint16) {
	var q [32]uint8
	d = symmetric(&q, x, 8)
	binary.LittleEndian.PutUint16(b, d)
	putNibbles(b[2:18], q[:])
	return d, 0
}

func quantizeQ5(b []byte, x []float32) (d, m uint16) {
	var q [32]uint8
	d = symmetric(&q, x, 16)
	binary.LittleEndian.PutUint16(b, d)
	binary.LittleEndian.PutUint32(b[2:], fifthBits(&q))
	putNibbles(b[6:22], q[:])
	return d, 0
}

// symmetric sets the codes of d (q - half).
func symmetric(q *[32]uint8, x []float32, half float32) (d uint16) {
	most := x[absMax(x)]
	if most == 0 {
		most = 0 // not -0, which would show in the sign of the scale
	}
	scale := most / -half
	inverse := reciprocal(scale)
	for i, v := range x {
		q[i] = min(truncate(float32(v*inverse)+half+0.5), uint8(2*half-1))
	}
	return float16.FromFloat32(scale)
}

// quantizeQ5Min: codes go from the least element, 0, to the greatest, 31.
func quantizeQ5Min(b []byte, x []float32) (d, m uint16) {
	low, high := x[0], x[0]
	for _, v := range x {
		if v < low {
			low = v
		}
		if v > high {
			high = v
		}
	}
	scale := (high - low) / 31
	inverse := reciprocal(scale)
	var q [32]uint8
	for i, v := range x {
		q[i] = truncate(float32((v-low)*inverse) + 0.5)
	}
	d, m = float16.FromFloat32(scale), float16.FromFloat32(low)
	binary.LittleEndian.PutUint16(b, d)
	binary.LittleEndian.PutUint16(b[2:], m)
	binary.LittleEndian.PutUint32(b[4:], fifthBits(&q))
	putNibbles(b[8:24], q[:])
	return d, m
}

// quantizeQ8: the largest magnitude is 127, and halves are rounded away from zero.
func quantizeQ8(b []byte, x []float32) (d, m uint16) {
	scale := float32(math.Abs(float64(x[absMax(x)]))) / 127
	inverse := reciprocal(scale)
	d = float16.FromFloat32(scale)
	binary.LittleEndian.PutUint16(b, d)
	for i, v := range x {
		switch v = float32(v * inverse); { // the sums are exact in float64
		case v >= 0:
			b[2+i] = truncate64(float64(v) + 0.5)
		default:
			b[2+i] = -truncate64(0.5 - float64(v))
		}
	}
	return d, 0
}

func reciprocal(scale float32) float32 {
	if scale == 0 {
		return 0
	}
	return 1 / scale
}

// truncate returns the whole part of a number from 0 on, and 0 for infinities and NaN, as the instructions of
// processors do after which ggml's bytes are what they are.
func truncate(v float32) uint8 { return truncate64(float64(v)) }

func truncate64(v float64) uint8 {
	if v > 0 && v < 256 {
		return uint8(v)
	}
	return 0
}

// putNibbles is the inverse of nibbles. Of a code it takes the low four bits.
func putNibbles(b []byte, codes []uint8) {
	for j := range b[:16] {
		b[j] = codes[j]&15 | codes[j+16]<<4
	}
}

// fifthBits is the inverse of fifths.
func fifthBits(codes *[32]uint8) (bits uint32) {
	for j, q := range codes {
		bits |= uint32(q>>4&1) << j
	}
	return bits
}
