package sampling

import "golang.org/x/sys/cpu"

//go:noescape
func weighAVX2(weights *float64, x *float32, n int, best, scale float64, roots *[64]uint64, sums *[4]float64)

//go:noescape
func maxAVX2(x *float32, n int) float32

var hasAVX2 = cpu.X86.HasAVX2

// weighVector computes the first weights, and their sums, and returns how many.
func weighVector(weights []float64, x []float32, best, scale float64, sums *[4]float64) int {
	n := len(weights) &^ 3
	if !hasAVX2 || n == 0 {
		return 0
	}
	weighAVX2(&weights[0], &x[0], n, best, scale, &roots, sums)
	return n
}

// maxVector returns the largest of the first numbers, and how many these are.
func maxVector(x []float32) (most float32, n int) {
	if n = len(x) &^ 31; !hasAVX2 || n == 0 {
		return 0, 0
	}
	return maxAVX2(&x[0], n), n
}
