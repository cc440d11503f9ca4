package dash

import (
	"cmp"
	"math"
	"regexp"
	"slices"

	"github.com/goart-dev/art"
)

// curve returns the values of a metric over an axis.
func curve(rows []art.HistoryRow, key string, x xAxis) []point {
	place := places(rows, x)
	var list []point
	for _, row := range rows {
		y, ok := row.Metrics[key]
		if !ok {
			continue
		}
		if at0, ok := place(row); ok {
			list = append(list, at(at0, y))
		}
	}
	slices.SortStableFunc(list, func(a, b point) int { return cmp.Compare(a.X, b.X) })
	return list
}

// places returns where a row is on the axis.
func places(rows []art.HistoryRow, x xAxis) func(art.HistoryRow) (float64, bool) {
	switch x {
	case xTime:
		return func(row art.HistoryRow) (float64, bool) {
			at, ok := row.Metrics["time/wall_clock_sec"]
			return at, ok
		}
	case xTokens:
		sampled := map[int]float64{0: 0} // before each step
		for _, row := range rows {
			if n, ok := row.Metrics["data/cum/tokens_sampled"]; ok && row.Split == "train" {
				sampled[row.Step+1] = n
			}
		}
		return func(row art.HistoryRow) (float64, bool) {
			n, ok := sampled[row.Step]
			return n, ok
		}
	}
	return func(row art.HistoryRow) (float64, bool) { return float64(row.Step), true }
}

// smooth returns the exponential moving average with a weight of the past from 0 to below 1, without the bias to zero
// of its first values:
//
//	s = w*s + (1-w)*y,   n = w*n + (1-w),   s/n is the average
func smooth(points []point, weight float64) []point {
	if weight <= 0 {
		return points
	}
	out := make([]point, 0, len(points))
	var sum, norm float64
	for _, p := range points {
		if !finite(p.Y) {
			continue
		}
		sum, norm = weight*sum+(1-weight)*p.Y, weight*norm+(1-weight)
		out = append(out, at(p.X, sum/norm))
	}
	return out
}

// seedSuffix is what tells the runs of one experiment apart: the number at the end of their names.
var seedSuffix = regexp.MustCompile(`^(.*?)[-_.]?(?:seed[-_.]?)?\d+$`)

// experiment is the name of a run without its seed.
func experiment(name string) string {
	if m := seedSuffix.FindStringSubmatch(name); m != nil && m[1] != "" {
		return m[1]
	}
	return name
}

// overSeeds returns the mean of several curves, with their lowest and highest values as band, where all of them are
// defined: a mean over fewer would jump. Where the curves have points at the same places, it is over these; otherwise
// they are interpolated.
func overSeeds(curves [][]point) []point {
	curves = slices.DeleteFunc(slices.Clone(curves), func(c []point) bool { return len(c) == 0 })
	if len(curves) == 0 {
		return nil
	}
	var list []point
	for _, x := range commonPlaces(curves) {
		low, high, sum, n := math.Inf(1), math.Inf(-1), 0.0, 0
		for _, c := range curves {
			if y, ok := interpolate(c, x); ok {
				low, high, sum, n = min(low, y), max(high, y), sum+y, n+1
			}
		}
		if n == len(curves) {
			list = append(list, point{x, sum / float64(n), low, high})
		}
	}
	return list
}

// commonPlaces returns the places of the longest curve.
func commonPlaces(curves [][]point) []float64 {
	longest := slices.MaxFunc(curves, func(a, b []point) int { return cmp.Compare(len(a), len(b)) })
	list := make([]float64, len(longest))
	for i, p := range longest {
		list[i] = p.X
	}
	return list
}

// interpolate returns the value of a curve at a place, between its points; ok is false outside.
func interpolate(c []point, x float64) (y float64, ok bool) {
	i, exact := slices.BinarySearchFunc(c, x, func(p point, x float64) int { return cmp.Compare(p.X, x) })
	switch {
	case exact:
		return c[i].Y, finite(c[i].Y)
	case i == 0 || i == len(c):
		return 0, false
	}
	a, b := c[i-1], c[i]
	y = a.Y + (b.Y-a.Y)*(x-a.X)/(b.X-a.X)
	return y, finite(y)
}
