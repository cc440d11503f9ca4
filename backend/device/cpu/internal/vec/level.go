// Package vec has the element-wise, row and copy kernels of the CPU device.
//
// Each result has the same bits at every [Level]: the kernels of all levels come from one description (see gen) and do
// the same operations in the same order, with the same roundings. Only the bits of a NaN may differ. Denormals are kept.
//
// A sum has one order, which depends on the length of the row alone. Lane l of 64 adds x[l], x[l+64], x[l+128] and so on to
// +0; then the lanes are added by halves: l and l+32, l and l+16, until one is left. So zeros behind a row change nothing.
//
// The functions run on the goroutine that calls them. Slices are of equal length unless said otherwise, and dst may be one
// of the operands of an element-wise function, but must not overlap it in part.
package vec

import "golang.org/x/sys/cpu"

//go:generate go run ./gen .

// Level is the instruction set that is used.
type Level int

// The levels. The zero value works everywhere.
const (
	Portable Level = iota // Go
	AVX2                  // AVX2 and FMA
	AVX512                // AVX-512 F, BW, DQ and VL
	NEON                  // Advanced SIMD of arm64

	numLevels
)

// String returns the name of the instruction set.
func (l Level) String() string {
	return [...]string{"portable", "AVX2", "AVX-512", "NEON"}[l]
}

// Levels returns what this processor has, the fastest last.
func Levels() []Level {
	list := []Level{Portable}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI2 {
		list = append(list, AVX2)
		if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL {
			list = append(list, AVX512)
		}
	}
	if cpu.ARM64.HasASIMD {
		list = append(list, NEON)
	}
	return list
}

// Best returns the fastest level of this processor.
func Best() Level {
	list := Levels()
	return list[len(list)-1]
}
