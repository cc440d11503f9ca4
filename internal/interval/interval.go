// Package interval has the confidence interval of a share. It is apart from backend/plot so that programs that draw
// nothing do without gonum/plot.
package interval

import "math"

// Share returns the share of successes among n trials and its 95 % confidence interval, the score interval of Wilson
// (1927), which also holds near 0 and 1:
//
//	(p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n)
//
// where p is successes/n and z the 97.5 % quantile of the normal distribution. A trial between success and failure,
// such as a tie, counts half; then the interval is too wide, never too narrow. Without trials the share is NaN, and the
// interval 0 to 1.
func Share(successes, n float64) (share, low, high float64) {
	if n == 0 {
		return math.NaN(), 0, 1
	}
	const z = 1.959963984540054
	p := successes / n
	middle, half := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	scale := 1 + z*z/n
	return p, max(0, (middle-half)/scale), min(1, (middle+half)/scale)
}
