package interval

import (
	"math"
	"testing"
)

// The ends are those of statsmodels 0.14: proportion_confint(k, n, method="wilson").
func TestShare(t *testing.T) {
	for _, c := range []struct{ k, n, share, low, high float64 }{
		{0, 10, 0, 0, 0.277533},
		{5, 10, 0.5, 0.236593, 0.763407},
		{10, 10, 1, 0.722467, 1},
		{81, 263, 0.307985, 0.255289, 0.366210},
	} {
		share, low, high := Share(c.k, c.n)
		for i, x := range [][2]float64{{c.share, share}, {c.low, low}, {c.high, high}} {
			if math.Abs(x[0]-x[1]) > 1e-6 {
				t.Errorf("%v of %v, number %d: %v, want %v", c.k, c.n, i, x[1], x[0])
			}
		}
	}
	share, low, high := Share(0, 0)
	if !math.IsNaN(share) || low != 0 || high != 1 {
		t.Errorf("without trials: %v from %v to %v", share, low, high)
	}
}
