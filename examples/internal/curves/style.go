package curves

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

const (
	width, height = 640, 400 // points
	margin        = 16
	titleSize     = 15
	labelSize     = 11
)

var (
	white     = color.White
	black     = color.Gray{40}
	grey      = color.Gray{110}
	lightGrey = color.Gray{226}
	blue      = color.RGBA{R: 0x1f, G: 0x6f, B: 0xb4, A: 255}
	lightBlue = color.RGBA{R: 0xa9, G: 0xcb, B: 0xe6, A: 255}
	orange    = color.RGBA{R: 0xd9, G: 0x5f, B: 0x02, A: 255}
)

// style is that of a text.
func style(size font.Length, c color.Color) text.Style {
	return text.Style{
		Color: c, Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size), Handler: plot.DefaultTextHandler,
	}
}

// newAxes returns empty axes: steps, and shares in percent.
func newAxes(y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.X.Label.Text, p.Y.Label.Text = "training step", y+" in %"
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, 1, percent{}
	p.X.Min, p.X.Tick.Marker = 0, wholeSteps{}
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		label, tick := style(labelSize, black), style(labelSize-1, grey)
		label.Rotation, label.XAlign, label.YAlign = axis.Label.TextStyle.Rotation, axis.Label.TextStyle.XAlign, axis.Label.TextStyle.YAlign
		tick.XAlign, tick.YAlign = axis.Tick.Label.XAlign, axis.Tick.Label.YAlign
		axis.Label.TextStyle, axis.Tick.Label = label, tick
		axis.Label.Padding, axis.Padding = vg.Points(6), 0
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = grey, grey
	}
	p.Y.LineStyle.Width, p.Y.Tick.Length = 0, 0
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, lightGrey
	p.Add(grid)
	return p
}

// legend adds a name with the lines and marks that it stands for.
func (l *labelled) legend(name string, marks ...plot.Thumbnailer) {
	legend := plot.NewLegend()
	legend.TextStyle, legend.Top, legend.Left, legend.Padding = style(labelSize, black), true, true, vg.Points(2)
	legend.ThumbnailWidth = vg.Points(24)
	legend.Add(name, marks...)
	l.legends = append(l.legends, legend)
}

// percent marks shares.
type percent struct{}

// Ticks implements [plot.Ticker].
func (percent) Ticks(_, _ float64) []plot.Tick {
	var ticks []plot.Tick
	for share := 0; share <= 100; share += 20 {
		ticks = append(ticks, plot.Tick{Value: float64(share) / 100, Label: fmt.Sprint(share)})
	}
	return ticks
}

// wholeSteps marks some 5 steps: 0, 50, 100.
type wholeSteps struct{}

// Ticks implements [plot.Ticker].
func (wholeSteps) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for step := 0.0; step <= high; step += distance((high - low) / 5) {
		ticks = append(ticks, plot.Tick{Value: step, Label: fmt.Sprint(step)})
	}
	return ticks
}

// distance is the smallest of 1, 2, 5, 10, 20, 50... that is not below x.
func distance(x float64) float64 {
	for d := 1.0; ; d *= 10 {
		for _, digit := range []float64{1, 2, 5} {
			if digit*d >= x {
				return digit * d
			}
		}
	}
}
