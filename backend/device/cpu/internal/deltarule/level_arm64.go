package deltarule

import "github.com/goart-dev/art/backend/device/cpu/internal/cpuid"

var assembly = map[cpuid.Level]*kernels{cpuid.NEON: {stepNEON, readNEON}}

//go:noescape
func stepNEON(s *step)

//go:noescape
func readNEON(s *step)
