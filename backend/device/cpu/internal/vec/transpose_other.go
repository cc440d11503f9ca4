//go:build !amd64

package vec

func transposeStrip(Level, []float32, []float32, int, int, int) {}

func stripRows(Level) int { return 0 }
