package plot

import (
	"cmp"
	"image/color"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
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
	for _, step := range slices.Sorted(maps.Keys(byStep)) {
		points = append(points, Point{Step: step, Value: byStep[step]})
	}
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
	axes.X.Label.Text, axes.X.Tick.Marker = cmp.Or(c.X, "training step"), ticks(1)
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
	// Give the axes a range where the data has none.
	if !(axes.X.Min < axes.X.Max) {
		axes.X.Min, axes.X.Max = 0, 1
	}
	axes.X.Min = min(0, axes.X.Min)
	if c.Percent {
		axes.Y.Min, axes.Y.Max = min(0, axes.Y.Min), max(1, axes.Y.Max)
	}
	if math.IsInf(axes.Y.Min, 0) || math.IsInf(axes.Y.Max, 0) {
		axes.Y.Min, axes.Y.Max = 0, 1
	}
	if axes.Y.Min == axes.Y.Max {
		d := max(1, math.Abs(axes.Y.Min)) / 2
		axes.Y.Min, axes.Y.Max = axes.Y.Min-d, axes.Y.Max+d
	}
	return layOut(canvas, c.Title, legend, axes)
}

// finite returns the points that can be drawn, in the order of steps.
func finite(points []Point) []Point {
	sorted := slices.DeleteFunc(slices.Clone(points),
		func(p Point) bool { return math.IsNaN(p.Value) || math.IsInf(p.Value, 0) })
	slices.SortStableFunc(sorted, func(a, b Point) int { return cmp.Compare(a.Step, b.Step) })
	return sorted
}

// addSeries draws a curve with its error band, and returns what stands for it in the legend.
func addSeries(axes *plot.Plot, s Series, c stroke) ([]plot.Thumbnailer, error) {
	if err := addBand(axes, s.Points, c.color); err != nil {
		return nil, err
	}
	values := make(plotter.XYs, len(s.Points))
	for i, p := range s.Points {
		values[i] = plotter.XY{X: float64(p.Step), Y: p.Value}
	}
	if s.Smooth && len(values) > 1 { // one point has no trend, and would hardly be seen
		raw, err := plotter.NewScatter(values)
		if err != nil {
			return nil, err
		}
		raw.Color, raw.Radius, raw.Shape = faint(c.color, 90), vg.Points(1.5), draw.CircleGlyph{}
		trend, err := plotter.NewLine(smooth(values))
		if err != nil {
			return nil, err
		}
		trend.Color, trend.Width, trend.Dashes = c.color, vg.Points(2), c.dashes
		axes.Add(raw, trend)
		return []plot.Thumbnailer{trend}, nil
	}
	line, marks, err := plotter.NewLinePoints(values)
	if err != nil {
		return nil, err
	}
	line.Color, line.Width, line.Dashes = c.color, vg.Points(1.25), c.dashes
	marks.Color, marks.Radius, marks.Shape = c.color, vg.Points(3), draw.CircleGlyph{}
	axes.Add(line, marks)
	return []plot.Thumbnailer{line, marks}, nil
}

// addBand draws the error band, where points have one.
func addBand(axes *plot.Plot, points []Point, c color.NRGBA) error {
	var upper, lower plotter.XYs
	for _, p := range points {
		if p.Low < p.High {
			upper = append(upper, plotter.XY{X: float64(p.Step), Y: p.High})
			lower = append(lower, plotter.XY{X: float64(p.Step), Y: p.Low})
		}
	}
	if len(upper) < 2 {
		return nil
	}
	slices.Reverse(lower)
	band, err := plotter.NewPolygon(append(upper, lower...))
	if err != nil {
		return err
	}
	band.Color, band.LineStyle.Width = faint(c, 45), 0
	axes.Add(band)
	return nil
}

// smooth returns the trend of values, see [Series].
func smooth(values plotter.XYs) plotter.XYs {
	out := make(plotter.XYs, len(values))
	for i := range out {
		reach := min(max(1, len(values)/20), i, len(values)-1-i)
		sum := 0.0
		for _, v := range values[i-reach : i+reach+1] {
			sum += v.Y
		}
		out[i] = plotter.XY{X: values[i].X, Y: sum / float64(2*reach+1)}
	}
	return out
}
