package plot

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

const (
	chartWidth, chartHeight = 640, 400 // points
	margin                  = 16
	titleSize               = 15
	labelSize               = 11
	legendLine              = 18
)

var (
	white     = color.White
	black     = color.Gray{40}
	grey      = color.Gray{110}
	lightGrey = color.Gray{226}
)

// palette is that of Okabe and Ito (2008), "Color universal design", without its yellow, which is too light for lines.
var palette = []color.NRGBA{
	{R: 0x00, G: 0x72, B: 0xb2, A: 255}, // blue
	{R: 0xd5, G: 0x5e, B: 0x00, A: 255}, // vermilion
	{R: 0x00, G: 0x9e, B: 0x73, A: 255}, // bluish green
	{R: 0xcc, G: 0x79, B: 0xa7, A: 255}, // reddish purple
	{R: 0xe6, G: 0x9f, B: 0x00, A: 255}, // orange
	{R: 0x56, G: 0xb4, B: 0xe9, A: 255}, // sky blue
	{R: 0x28, G: 0x28, B: 0x28, A: 255}, // black
}

// dashes tell series apart that have the same colour.
var dashes = [][]vg.Length{nil, {6, 3}, {2, 2}, {8, 3, 2, 3}}

// stroke is how a series is drawn.
type stroke struct {
	color  color.NRGBA
	dashes []vg.Length
}

// strokeOf returns that of the series with an index.
func strokeOf(i int) stroke {
	return stroke{palette[i%len(palette)], dashes[i/len(palette)%len(dashes)]}
}

// faint returns a colour with an opacity of alpha / 255.
func faint(c color.NRGBA, alpha uint8) color.NRGBA {
	c.A = alpha
	return c
}

// style is that of a text.
func style(size font.Length, c color.Color) text.Style {
	return text.Style{
		Color: c, Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size), Handler: plot.DefaultTextHandler,
	}
}

// newAxes returns axes without data.
func newAxes() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		label, tick := style(labelSize, black), style(labelSize-1, grey)
		old := axis.Label.TextStyle
		label.Rotation, label.XAlign, label.YAlign = old.Rotation, old.XAlign, old.YAlign
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

// labelValues says what the values of an axis are.
func labelValues(axis *plot.Axis, what string, isPercent bool) {
	axis.Label.Text = what
	if isPercent {
		axis.Label.Text, axis.Tick.Marker = what+" (%)", ticks(100)
	}
}

// ticks marks some 5 round values of an axis, which are written times it: 100 writes shares from 0 to 1 as percents.
type ticks float64

// Ticks implements [plot.Ticker].
func (times ticks) Ticks(low, high float64) (list []plot.Tick) {
	scale := float64(times)
	apart := distance((high - low) * scale / 5)
	for v := math.Ceil(scale*low/apart) * apart; v <= scale*high+1e-9; v += apart {
		list = append(list, plot.Tick{Value: v / scale, Label: fmt.Sprint(v)})
	}
	return list
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
