package plot

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bars is a drawing that compares models by one value each.
type Bars struct {
	Title string
	// Y is what the values are, with their unit.
	Y string
	// Percent draws values from 0 to 1 as percents.
	Percent bool
	Bars    []Bar
}

// barWidth is the room of a bar and of its name.
const barWidth = 90

// Bar is a value of a [Bars]. If Low is less than High, they are the ends of its error bar.
type Bar struct {
	Name             string
	Value, Low, High float64
}

func (b *Bars) size() (width, height vg.Length) {
	return max(chartWidth/2, vg.Length(len(b.Bars))*barWidth+120), chartHeight
}

func (b *Bars) draw(canvas draw.Canvas) error {
	axes := newAxes()
	labelValues(&axes.Y, b.Y, b.Percent)
	axes.X.Tick.Length, axes.X.Tick.Marker = 0, b
	for i, bar := range b.Bars {
		if err := bar.add(axes, float64(i), i); err != nil {
			return err
		}
	}
	axes.X.Min, axes.X.Max = -0.6, float64(max(1, len(b.Bars)))-0.4
	axes.Y.Min = min(0, axes.Y.Min)
	if b.Percent {
		axes.Y.Max = max(1, axes.Y.Max)
	}
	if !(axes.Y.Min < axes.Y.Max) {
		axes.Y.Min, axes.Y.Max = 0, 1
	}
	return layOut(canvas, b.Title, nil, axes)
}

// add draws a bar, its error bar and its value.
func (b Bar) add(axes *plot.Plot, x float64, index int) error {
	rectangle, err := plotter.NewPolygon(plotter.XYs{{X: x - 0.3, Y: 0}, {X: x + 0.3, Y: 0}, {X: x + 0.3, Y: b.Value},
		{X: x - 0.3, Y: b.Value}})
	if err != nil {
		return err
	}
	rectangle.Color, rectangle.LineStyle.Width = palette[index%len(palette)], 0
	axes.Add(rectangle)
	if b.Low >= b.High {
		return nil
	}
	for _, line := range []plotter.XYs{
		{{X: x, Y: b.Low}, {X: x, Y: b.High}}, {{X: x - 0.06, Y: b.Low}, {X: x + 0.06, Y: b.Low}},
		{{X: x - 0.06, Y: b.High}, {X: x + 0.06, Y: b.High}},
	} {
		l, err := plotter.NewLine(line)
		if err != nil {
			return err
		}
		l.Color, l.Width = black, vg.Points(1.25)
		axes.Add(l)
	}
	return nil
}

// Ticks names the bars: it implements [plot.Ticker].
func (b *Bars) Ticks(_, _ float64) []plot.Tick {
	var ticks []plot.Tick
	for i, bar := range b.Bars {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: wrap(bar.Name, labelSize-1, barWidth)})
	}
	return ticks
}
