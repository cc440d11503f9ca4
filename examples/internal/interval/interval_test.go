package interval

import (
	"math"
	"testing"
)

// The expected ends are those of statsmodels 0.14: proportion_confint(k, n, method="wilson").
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n            int
		value, low, hig float64
	}{
		{0, 10, 0, 0, 0.277533},
		{5, 10, 0.5, 0.236593, 0.763407},
		{10, 10, 1, 0.722467, 1},
		{81, 263, 0.307985, 0.255289, 0.366213},
		{0, 0, 0, 0, 1},
	} {
		s := Wilson(c.k, c.n)
		for i, d := range []float64{s.Value - c.value, s.Low - c.low, s.High - c.hig} {
			if math.Abs(d) > 1e-4 {
				t.Errorf("Wilson(%d, %d) = %+v, number %d is off by %g", c.k, c.n, s, i, d)
			}
		}
	}
}
