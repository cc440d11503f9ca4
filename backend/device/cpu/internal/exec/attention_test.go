package exec

import (
	"math"
	"testing"
)

// The zeros at the end of a row have either sign; least is where the search ends.
func TestLastNumber(t *testing.T) {
	zeros := []float32{0, float32(math.Copysign(0, -1))}
	for n := range 70 {
		for last := -1; last < n; last++ {
			x := make([]float32, n)
			for i := range x {
				x[i] = zeros[i%2]
			}
			if last >= 0 {
				x[last] = []float32{1e-45, float32(math.NaN()), -3}[n%3]
			}
			for _, least := range []int{0, min(1, n), n / 2, n} {
				if got, want := lastNumber(x, least), max(last+1, least); got != want {
					t.Fatalf("%d numbers, the last one at %d, at least %d: %d, want %d", n, last, least, got, want)
				}
			}
		}
	}
}
