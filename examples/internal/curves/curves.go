// Package curves draws the logged metrics of a run, for the examples.
package curves

import (
	"bytes"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/goart-dev/art"
)

// Plot is a plot of shares over the steps of a run.
type Plot struct {
	Title string
	Y     string // what the shares are of: "games not lost"
	// Train is what each step's own rollouts had: a thin line, with a thick one for the trend. Val is what measurements between
	// the steps had: points.
	Train, Val Curve
}

// Curve is a metric of the rows, from 0 to 1.
type Curve struct {
	Key  string // "train/reward"
	Name string // in the legend
}

// At returns a logged metric of a step. ok is false when there is none.
func At(rows []art.HistoryRow, key string, step int) (value float64, ok bool) {
	for _, row := range rows {
		if value, ok = row.Metrics[key]; ok && row.Step == step {
			return value, true
		}
	}
	return 0, false
}

// Save draws the plot as reward.png and reward.svg in dir. A key that was never logged has no curve.
func (p Plot) Save(dir string, rows []art.HistoryRow) error {
	for _, format := range []string{"png", "svg"} {
		c, err := draw.NewFormattedCanvas(width, height, format)
		if err != nil {
			return err
		}
		if err := p.draw(draw.New(c), rows); err != nil {
			return err
		}
		var file bytes.Buffer
		if _, err := c.WriteTo(&file); err != nil {
			return err
		}
		// Viewers of SVG have fonts of their own.
		content := bytes.ReplaceAll(file.Bytes(), []byte("Liberation Sans"), []byte("Liberation Sans,Arial,Helvetica,sans-serif"))
		if err := os.WriteFile(filepath.Join(dir, "reward."+format), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// draw draws title, legend and axes, one below the other.
func (p Plot) draw(c draw.Canvas, rows []art.HistoryRow) error {
	c.SetColor(white)
	c.Fill(c.Rectangle.Path())
	axes, err := p.axes(points(rows, p.Train.Key), points(rows, p.Val.Key))
	if err != nil {
		return err
	}
	c = draw.Crop(c, margin, -margin, margin, -margin)
	heading := style(titleSize, black)
	heading.YAlign = draw.YTop
	c.FillText(heading, vg.Point{X: c.Min.X, Y: c.Max.Y}, p.Title)
	left := vg.Length(0)
	for _, legend := range axes.legends {
		legend.Draw(draw.Crop(c, left, 0, 0, -2*titleSize))
		left += legend.Rectangle(c).Size().X + margin
	}
	axes.Draw(draw.Crop(c, 0, 0, 0, -4*titleSize))
	return nil
}

// points returns the values of a metric in the order of steps.
func points(rows []art.HistoryRow, key string) plotter.XYs {
	var out plotter.XYs
	for _, row := range rows {
		if value, ok := row.Metrics[key]; ok {
			out = append(out, plotter.XY{X: float64(row.Step), Y: value})
		}
	}
	sortBySteps(out)
	return out
}

// labelled are axes with curves, and a legend for each.
type labelled struct {
	*plot.Plot
	legends []plot.Legend
}

// axes returns the axes with what is drawn on them.
func (p Plot) axes(train, val plotter.XYs) (labelled, error) {
	axes := labelled{Plot: newAxes(p.Y)}
	if len(train) > 0 {
		if err := axes.train(train, p.Train.Name); err != nil {
			return axes, err
		}
	}
	if len(val) > 0 {
		return axes, axes.val(val, p.Val.Name)
	}
	return axes, nil
}

// train adds the values of each step, and their trend.
func (l *labelled) train(values plotter.XYs, name string) error {
	raw, err := plotter.NewLine(values)
	if err != nil {
		return err
	}
	raw.Color, raw.Width = lightBlue, vg.Points(0.75)
	trend, err := plotter.NewLine(smooth(values))
	if err != nil {
		return err
	}
	trend.Color, trend.Width = blue, vg.Points(2)
	l.Add(raw, trend)
	l.legend(name, trend)
	return nil
}

// val adds measurements.
func (l *labelled) val(values plotter.XYs, name string) error {
	line, marks, err := plotter.NewLinePoints(values)
	if err != nil {
		return err
	}
	line.Color, line.Width, line.Dashes = orange, vg.Points(1), []vg.Length{vg.Points(3), vg.Points(3)}
	marks.Color, marks.Radius, marks.Shape = orange, vg.Points(3.5), draw.CircleGlyph{}
	l.Add(line, marks)
	l.legend(name, line, marks)
	return nil
}
