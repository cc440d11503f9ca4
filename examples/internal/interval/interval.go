// Package interval has the confidence intervals that the examples print.
package interval

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Share is a share of n trials with its 95 % confidence interval.
type Share struct {
	Value, Low, High float64
	N                int
}

// Wilson returns the share of successes among n trials, with the score interval of Wilson (1927), which also holds near
// 0 and 1:
//
//	(p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n)
//
// where p is successes/n and z the 97.5 % quantile of the normal distribution. Without trials it is 0 to 1.
func Wilson(successes, n int) Share {
	if n == 0 {
		return Share{High: 1}
	}
	size, z := float64(n), distuv.UnitNormal.Quantile(0.975)
	p := float64(successes) / size
	middle, half := p+z*z/(2*size), z*math.Sqrt(p*(1-p)/size+z*z/(4*size*size))
	scale := 1 + z*z/size
	return Share{Value: p, Low: max(0, (middle-half)/scale), High: min(1, (middle+half)/scale), N: n}
}

// String formats the share and its interval in percent.
func (s Share) String() string {
	return fmt.Sprintf("%5.1f%% [%5.1f, %5.1f]", 100*s.Value, 100*s.Low, 100*s.High)
}
