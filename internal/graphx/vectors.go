//go:build !(amd64 && goexperiment.simd)

package graphx

// DeviceName says what computes. This build has no vector kernels.
func DeviceName() string {
	return "GoMLX's Go device in plain Go: slow; build with GOEXPERIMENT=simd on amd64 for its vector kernels"
}
