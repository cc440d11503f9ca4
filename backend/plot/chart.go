package plot

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/goart-dev/art"
)

// Chart is a drawing of curves over steps.
type Chart struct {
	Title string
	// X is what the steps are. Default "training step".
	X string
	// Y is what the values are, with their unit: "reward", "time (s)".
	Y string
	// Percent draws values from 0 to 1 as percents.
	Percent bool
	// Series are drawn in order, each in a colour of its own. One without points is left out.
	Series []Series
}

// Series is a curve of a [Chart].
type Series struct {
	Name   string // in the legend
	Points []Point
	// Smooth draws faint points and their trend as a line: for what has noise from step to step. A point of the trend is
	// the mean of the points at most n/20 places away, at least one, and fewer towards the ends. Otherwise points are
	// marked and joined.
	Smooth bool
}

// Point is a value at a step. If Low is less than High, they are the ends of an error band, such as a confidence
// interval.
type Point struct {
	Step             int
	Value, Low, High float64
}

// History returns the values of a metric, "train/reward", in the order of steps. Of two rows of a step with the metric
// the later one counts. Values that are not finite are left out.
func History(rows []art.HistoryRow, key string) []Point {
	byStep := map[int]float64{}
	for _, row := range rows {
		if value, ok := row.Metrics[key]; ok && !math.IsNaN(value) && !math.IsInf(value, 0) {
			byStep[row.Step] = value
		}
	}
	var points []Point
	for step, value := range byStep {
		points = append(points, Point{Step: step, Value: value})
	}
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.Step, b.Step) })
	return points
}

// size grows with the legend, so that the axes keep their height.
func (c *Chart) size() (width, height vg.Length) {
	var names []string
	for _, s := range c.Series {
		if len(finite(s.Points)) > 0 {
			names = append(names, s.Name)
		}
	}
	_, lines := placeLegend(names, chartWidth-2*margin)
	return chartWidth, chartHeight + vg.Length(max(0, lines-2))*legendLine
}

func (c *Chart) draw(canvas draw.Canvas) error {
	axes := newAxes()
	axes.X.Label.Text, axes.X.Tick.Marker = cmp.Or(c.X, "training step"), wholeSteps{}
	labelValues(&axes.Y, c.Y, c.Percent)
	var legend []legendEntry
	for i, s := range c.Series {
		points := finite(s.Points)
		if len(points) == 0 {
			continue
		}
		marks, err := addSeries(axes, Series{s.Name, points, s.Smooth}, strokeOf(i))
		if err != nil {
			return err
		}
		legend = append(legend, legendEntry{s.Name, marks})
	}
	c.widen(axes)
	return layOut(canvas, c.Title, legend, axes)
}

// finite returns the points that can be drawn, in the order of steps.
func finite(points []Point) []Point {
	sorted := slices.DeleteFunc(slices.Clone(points),
		func(p Point) bool { return math.IsNaN(p.Value) || math.IsInf(p.Value, 0) })
	slices.SortStableFunc(sorted, func(a, b Point) int { return cmp.Compare(a.Step, b.Step) })
	return sorted
}

// widen gives the axes a range where the data has none.
func (c *Chart) widen(p *plot.Plot) {
	if !(p.X.Min < p.X.Max) {
		p.X.Min, p.X.Max = 0, 1
	}
	p.X.Min = min(0, p.X.Min)
	if c.Percent {
		p.Y.Min, p.Y.Max = min(0, p.Y.Min), max(1, p.Y.Max)
	}
	if math.IsInf(p.Y.Min, 0) || math.IsInf(p.Y.Max, 0) {
		p.Y.Min, p.Y.Max = 0, 1
	}
	if p.Y.Min == p.Y.Max {
		d := max(1, math.Abs(p.Y.Min)) / 2
		p.Y.Min, p.Y.Max = p.Y.Min-d, p.Y.Max+d
	}
}
