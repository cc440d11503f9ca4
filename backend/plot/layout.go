package plot

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// legendEntry is a name, and the lines and marks that it stands for.
type legendEntry struct {
	name  string
	marks []plot.Thumbnailer
}

// layOut draws title, legend and axes, one below the other.
func layOut(c draw.Canvas, title string, entries []legendEntry, axes *plot.Plot) error {
	c = draw.Crop(c, margin, -margin, margin, -margin)
	if title != "" {
		heading := style(titleSize, black)
		heading.YAlign = draw.YTop
		c.FillText(heading, vg.Point{X: c.Min.X, Y: c.Max.Y}, title)
		c = draw.Crop(c, 0, 0, 0, -2*titleSize)
	}
	c = drawLegend(c, entries)
	axes.Draw(c)
	return nil
}

// drawLegend draws entries side by side, in as many lines as they need, and returns what is left below.
func drawLegend(c draw.Canvas, entries []legendEntry) draw.Canvas {
	if len(entries) == 0 {
		return c
	}
	left := vg.Length(0)
	for _, e := range entries {
		legend := e.legend()
		width := legend.Rectangle(c).Size().X
		if left > 0 && left+width > c.Size().X {
			left, c = 0, draw.Crop(c, 0, 0, 0, -legendLine)
		}
		legend.Draw(draw.Crop(c, left, 0, 0, 0))
		left += width + margin
	}
	return draw.Crop(c, 0, 0, 0, -legendLine-margin/2)
}

func (e legendEntry) legend() plot.Legend {
	legend := plot.NewLegend()
	legend.TextStyle, legend.Top, legend.Left, legend.Padding = style(labelSize, black), true, true, vg.Points(2)
	legend.ThumbnailWidth = vg.Points(24)
	legend.Add(e.name, e.marks...)
	return legend
}
