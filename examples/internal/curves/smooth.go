package curves

import (
	"cmp"
	"slices"

	"gonum.org/v1/plot/plotter"
)

// smooth returns the trend of values: each is the mean of those at most n/20 places away, but at least one. At the ends there are
// fewer on both sides, so that the trend does not lag.
func smooth(values plotter.XYs) plotter.XYs {
	out := slices.Clone(values)
	for i := range out {
		reach := min(max(1, len(values)/20), i, len(values)-1-i)
		sum := 0.0
		for _, v := range values[i-reach : i+reach+1] {
			sum += v.Y
		}
		out[i].Y = sum / float64(2*reach+1)
	}
	return out
}

func sortBySteps(values plotter.XYs) {
	slices.SortStableFunc(values, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
}
