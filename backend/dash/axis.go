package dash

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
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

// rounds returns round values within the range.
func (a *axis) rounds(n int) []float64 {
	if a.log && a.high/a.low > 10 {
		return a.powers(n)
	}
	step := roundStep(a.high/float64(n) - a.low/float64(n))
	if a.kind == xStep {
		step = max(step, 1)
	}
	if a.kind == xTime {
		step = timeStep(step)
	}
	var list []float64
	if !finite(step) || step <= 0 {
		return nil
	}
	for i := math.Ceil(a.low / step); i*step <= a.high && len(list) < 20; i++ {
		list = append(list, i*step)
	}
	return list
}

// powers returns powers of ten.
func (a *axis) powers(n int) []float64 {
	first, last := math.Ceil(math.Log10(a.low)), math.Floor(math.Log10(a.high))
	every := max(1, math.Ceil((last-first+1)/float64(n)))
	var list []float64
	for e := first; e <= last; e += every {
		list = append(list, math.Pow(10, e))
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

// timeStep returns a round number of seconds, minutes, hours or days, at least x seconds where there is one.
func timeStep(x float64) float64 {
	if x < 1 {
		return x
	}
	for _, s := range []float64{
		1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400,
	} {
		if s >= x {
			return s
		}
	}
	return math.Ceil(x/86400) * 86400
}

// number writes a value with four digits.
func number(v float64) string {
	switch size := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Sprint(v)
	case size >= 1e5:
		return count(v)
	case size != 0 && size < 1e-4:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(rounded4(v), 'f', -1, 64)
}

// rounded4 keeps four digits.
func rounded4(v float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
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

func sortDescending(list []float64) {
	slices.Sort(list)
	slices.Reverse(list)
}
