package gemm

import (
	"slices"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

// TestIntegers_NoVNNI: processors with AVX-512 and without VPDPBUSD have the same bits.
func TestIntegers_NoVNNI(t *testing.T) {
	if !slices.Contains(cpuid.Supported(), cpuid.AVX512) {
		t.Skip("this CPU lacks AVX-512")
	}
	checkIntegers(t, &Kernels{level: &levelNoVNNI})
	checkExtremes(t, &Kernels{level: &levelNoVNNI})
}
