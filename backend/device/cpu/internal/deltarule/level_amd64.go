package deltarule

import "github.com/goart-dev/art/backend/device/cpu/internal/cpuid"

var assembly = map[cpuid.Level]*kernels{
	cpuid.AVX2:   {stepAVX2, readAVX2},
	cpuid.AVX512: {stepAVX512, readAVX512},
}

//go:noescape
func stepAVX2(s *step)

//go:noescape
func readAVX2(s *step)

//go:noescape
func stepAVX512(s *step)

//go:noescape
func readAVX512(s *step)
