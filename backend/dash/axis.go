package dash

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/goart-dev/art"
)

// xAxis says what is on the horizontal axis.
type xAxis string

const (
	xStep   xAxis = "step"
	xTime   xAxis = "time"   // seconds since the run began
	xTokens xAxis = "tokens" // sampled since the run began
)

// name is what the axis is called.
func (x xAxis) name() string {
	if x == xTime {
		return "time since the start"
	}
	return string(x)
}

// text writes a place on the axis.
func (x xAxis) text(v float64) string {
	switch x {
	case xTime:
		return duration(time.Duration(v * float64(time.Second)))
	case xTokens:
		return count(v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// reading writes a place on the axis where the axis is not beside it.
func (x xAxis) reading(v float64) string {
	switch x {
	case xTime:
		return x.text(v)
	case xTokens:
		return x.text(v) + " tokens"
	}
	return "step " + x.text(v)
}

// axis is a range of values.
type axis struct {
	low, high float64
	log       bool
	kind      xAxis // "" is the vertical one
}

// add makes room for a value.
func (a *axis) add(v float64) {
	if finite(v) && (!a.log || v > 0) {
		a.low, a.high = min(a.low, v), max(a.high, v)
	}
}

// widen makes the range one that is not empty, and leaves some air when there is to be some.
func (a *axis) widen(air bool) {
	switch {
	case a.log && a.low == a.high:
		a.low, a.high = a.low/2, a.high*2
	case a.log && air:
		grow := math.Pow(a.high/a.low, 0.05)
		a.low, a.high = a.low/grow, a.high*grow
	case a.low == 0 && a.high == 0 && air:
		a.high = 1
	case a.low == a.high && air:
		half := max(math.Abs(a.low)*0.1, 1e-9)
		a.low, a.high = a.low-half, a.high+half
	case a.low == a.high:
		half := max(0.5, math.Abs(a.low)*1e-6)
		a.low, a.high = a.low-half, a.high+half
	case air:
		grow := 0.06*a.high - 0.06*a.low
		if a.low >= 0 && a.low-grow < 0 {
			a.low = 0 // an axis of what is never negative begins at 0, not below
		} else {
			a.low -= grow
		}
		a.high += grow
	}
}

// place returns where a value is, from 0 to 1.
func (a *axis) place(v float64) float64 {
	if a.log {
		return math.Log(v/a.low) / math.Log(a.high/a.low)
	}
	return (v/2 - a.low/2) / (a.high/2 - a.low/2) // halves: the difference of large numbers of both signs overflows
}

// ticks returns about n places with round values.
func (a *axis) ticks(n int) []tick {
	var list []tick
	places := a.rounds(n)
	if len(places) < 3 && a.kind == "" {
		places = a.rounds(2 * n) // fewer than three say little about the scale
	}
	for _, v := range places {
		text := number(v)
		if a.kind != "" {
			text = a.kind.text(v)
		}
		where := a.place(v)
		if a.kind == "" {
			where = 1 - where
		}
		list = append(list, tick{percent(where), text})
	}
	return list
}

// rounds returns round values within the range: powers of ten where a logarithmic one is wide.
func (a *axis) rounds(n int) (list []float64) {
	if a.log && a.high/a.low > 10 {
		first, last := math.Ceil(math.Log10(a.low)), math.Floor(math.Log10(a.high))
		every := max(1, math.Ceil((last-first+1)/float64(n)))
		for e := first; e <= last; e += every {
			list = append(list, math.Pow(10, e))
		}
		return list
	}
	step := roundStep(a.high/float64(n) - a.low/float64(n))
	if a.kind == xStep {
		step = max(step, 1)
	}
	if a.kind == xTime && step >= 1 { // seconds, minutes, hours or days
		round := []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400}
		if i, _ := slices.BinarySearch(round, step); i < len(round) {
			step = round[i]
		} else {
			step = math.Ceil(step/86400) * 86400
		}
	}
	if !finite(step) || step <= 0 {
		return nil
	}
	for i := math.Ceil(a.low / step); i*step <= a.high && len(list) < 20; i++ {
		list = append(list, i*step)
	}
	return list
}

// roundStep returns 1, 2 or 5 times a power of ten, at least x.
func roundStep(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*power >= x*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// number writes a value with four digits.
func number(v float64) string {
	switch size := math.Abs(v); {
	case !finite(v):
		return fmt.Sprint(v)
	case size >= 1e5:
		return count(v)
	case size != 0 && size < 1e-4:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(rounded(v, 4), 'f', -1, 64)
}

// rounded keeps some digits.
func rounded(v float64, digits int) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	if err != nil {
		return v
	}
	return out
}

// count writes a large number: 12.3k, 4.5M.
func count(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= unit.size {
			return strconv.FormatFloat(v/unit.size, 'g', 4, 64) + unit.name
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// duration writes a duration in the units that matter.
func duration(d time.Duration) string {
	switch {
	case d == 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return strconv.FormatFloat(math.Round(d.Seconds()*10)/10, 'f', -1, 64) + "s"
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%.0fd", d.Hours()/24)
}

// ago writes how long something is ago.
func ago(t, now time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "never"
	case d < -time.Minute: // the clock was set back
		return t.Format("2006-01-02 15:04")
	case d < 10*time.Second:
		return "now"
	case d < 48*time.Hour:
		return duration(d.Truncate(time.Second)) + " ago"
	}
	return t.Format("2006-01-02")
}

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
// defined: a mean over fewer would jump. It is over the places of the longest curve; others are interpolated between
// their points.
func overSeeds(curves [][]point) []point {
	curves = slices.DeleteFunc(slices.Clone(curves), func(c []point) bool { return len(c) == 0 })
	if len(curves) == 0 {
		return nil
	}
	var list []point
	for _, p := range slices.MaxFunc(curves, func(a, b []point) int { return cmp.Compare(len(a), len(b)) }) {
		low, high, sum, n := math.Inf(1), math.Inf(-1), 0.0, 0
		for _, c := range curves {
			if y, ok := interpolate(c, p.X); ok {
				low, high, sum, n = min(low, y), max(high, y), sum+y, n+1
			}
		}
		if n == len(curves) {
			list = append(list, point{p.X, sum / float64(n), low, high})
		}
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
