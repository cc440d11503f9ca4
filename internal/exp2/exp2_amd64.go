package exp2

import "golang.org/x/sys/cpu"

//go:noescape
func exp2AVX2(list *float64, n int, roots *[64]uint64)

var hasAVX2 = cpu.X86.HasAVX2

// vector replaces the first numbers of a list, and returns how many.
func vector(list []float64) int {
	n := len(list) &^ 3
	if !hasAVX2 || n == 0 {
		return 0
	}
	exp2AVX2(&list[0], n, &roots)
	return n
}
