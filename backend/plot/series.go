package plot

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// addSeries draws a curve with its error band, and returns what stands for it in the legend.
func addSeries(axes *plot.Plot, s Series, c stroke) ([]plot.Thumbnailer, error) {
	if err := addBand(axes, s.Points, c.color); err != nil {
		return nil, err
	}
	values := valuesOf(s.Points)
	if s.Smooth && len(values) > 1 { // one point has no trend, and would hardly be seen
		return addTrend(axes, values, c)
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

// addTrend draws faint points and the line of their trend.
func addTrend(axes *plot.Plot, values plotter.XYs, c stroke) ([]plot.Thumbnailer, error) {
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
	outline := upper
	for i := len(lower) - 1; i >= 0; i-- {
		outline = append(outline, lower[i])
	}
	band, err := plotter.NewPolygon(outline)
	if err != nil {
		return err
	}
	band.Color, band.LineStyle.Width = faint(c, 45), 0
	axes.Add(band)
	return nil
}

func valuesOf(points []Point) plotter.XYs {
	out := make(plotter.XYs, len(points))
	for i, p := range points {
		out[i] = plotter.XY{X: float64(p.Step), Y: p.Value}
	}
	return out
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
