// Package fma is the fused multiply-add of float32 in Go, for kernels without assembly.
package fma

import "math"

// Float32 is a*b + c, rounded once: what a fused multiply-add instruction of a CPU yields.
//
// The product is exact in float64. The sum is rounded to float64 and again to float32, which differs from one rounding
// only if the first one landed in the middle between two float32 numbers, or below the normal ones.
func Float32(a, b, c float32) float32 {
	s := float64(a)*float64(b) + float64(c)
	bits := math.Float64bits(s)
	if bits&(1<<29-1) == 1<<28 || bits&(1<<63-1) < normal {
		return odd(float64(a)*float64(b), float64(c), s)
	}
	return float32(s)
}

// normal has the bits of the smallest normal float32, as a float64.
const normal = (1023 - 126) << 52

// odd rounds p + c, whose float64 sum is s, to float32 by way of a float64 that is rounded to odd: if the sum is
// inexact the last bit is set, and so it never sits in the middle between two float32 numbers.
func odd(p, c, s float64) float32 {
	if s == 0 || math.IsNaN(s) || math.IsInf(s, 0) {
		return float32(s)
	}
	q := s - p
	rest := (p - (s - q)) + (c - q) // p + c == s + rest exactly
	bits := math.Float64bits(s)
	if rest != 0 && bits&1 == 0 {
		if (rest > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
	}
	return float32(math.Float64frombits(bits))
}
