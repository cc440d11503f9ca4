package deltarule

import "github.com/goart-dev/art/backend/device/cpu/internal/cpuid"

// stepOf returns the kernel of a level that goes on by a token.
func stepOf(l cpuid.Level) kernel {
	if k := assembly[l]; k != nil {
		return k.step
	}
	return stepPortable
}

// readOf returns the kernel of a level that only reads.
func readOf(l cpuid.Level) kernel {
	if k := assembly[l]; k != nil {
		return k.read
	}
	return readPortable
}

// kernels are those of a level.
type kernels struct{ step, read kernel }
