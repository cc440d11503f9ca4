//go:build amd64 && goexperiment.simd

package graphx

import "simd/archsimd"

// DeviceName says what computes.
func DeviceName() string {
	switch {
	case archsimd.X86.AVX512():
		return "GoMLX's Go device with AVX-512"
	case archsimd.X86.AVX2():
		return "GoMLX's Go device with AVX2"
	}
	return "GoMLX's Go device in plain Go: slow; this CPU has no AVX2"
}
