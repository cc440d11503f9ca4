// Package vec has the element-wise, row and copy kernels of the CPU device.
//
// Each result has the same bits at every [Level]: the kernels of all levels come from one description (see gen) and do
// the same operations in the same order, with the same roundings. Only the bits of a NaN may differ. Denormals are
// kept.
//
// A sum has one order, which depends on the length of the row alone. Lane l of 64 adds x[l], x[l+64], x[l+128] and so
// on to +0; then the lanes are added by halves: l and l+32, l and l+16, until one is left. So zeros behind a row change
// nothing.
//
// The functions run on the goroutine that calls them. Slices are of equal length unless said otherwise, and dst may be
// one of the operands of an element-wise function, but must not overlap it in part.
package vec

import "github.com/goart-dev/art/backend/device/cpu/internal/cpuid"

//go:generate go run ./gen .

// Level is the instruction set that is used.
type Level = cpuid.Level

// The levels, for which there are kernels in [cpuid.Level]'s order.
const (
	Portable = cpuid.Portable
	AVX2     = cpuid.AVX2
	AVX512   = cpuid.AVX512
	NEON     = cpuid.NEON

	numLevels = NEON + 1
)
