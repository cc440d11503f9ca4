//go:build !amd64

package exp2

// vector replaces the first numbers of a list, and returns how many: there is no kernel.
func vector([]float64) int { return 0 }
