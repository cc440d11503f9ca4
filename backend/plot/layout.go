package plot

import (
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	// reserve is the room of a text as a multiple of its width here: a viewer of SVG that has neither Liberation Sans nor
	// Arial takes a wider font, such as DejaVu Sans or Verdana.
	reserve   = 1.25
	thumbnail = 24
	thumbGap  = 4 // between the thumbnail and its text
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
		c = drawTitle(c, title)
	}
	c = drawLegend(c, entries)
	axes.Y.Label.Text = fit(axes.Y.Label.Text, labelSize, c.Size().Y)
	axes.Draw(c)
	return nil
}

// drawTitle draws a title and returns what is left below.
func drawTitle(c draw.Canvas, title string) draw.Canvas {
	heading := style(titleSize, black)
	heading.YAlign = draw.YTop
	c.FillText(heading, vg.Point{X: c.Min.X, Y: c.Max.Y}, fit(title, titleSize, c.Size().X))
	return draw.Crop(c, 0, 0, 0, -2*titleSize)
}

// drawLegend draws entries side by side, in as many lines as they need, and returns what is left below.
func drawLegend(c draw.Canvas, entries []legendEntry) draw.Canvas {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.name
	}
	places, lines := placeLegend(names, c.Size().X)
	for i, e := range entries {
		e.name = fit(e.name, labelSize, c.Size().X-thumbnail-thumbGap)
		legend := plot.NewLegend()
		legend.TextStyle, legend.Top, legend.Left, legend.Padding = style(labelSize, black), true, true, vg.Points(2)
		legend.ThumbnailWidth = vg.Points(thumbnail)
		legend.Add(e.name, e.marks...)
		legend.Draw(draw.Crop(c, places[i].X, 0, 0, -places[i].Y))
	}
	return draw.Crop(c, 0, 0, 0, -legendHeight(lines))
}

// legendHeight is that of a legend with the room below it.
func legendHeight(lines int) vg.Length {
	if lines == 0 {
		return 0
	}
	return vg.Length(lines)*legendLine + margin/2
}

// placeLegend returns where the entries of a legend stand from its upper left corner, and how many lines they take.
func placeLegend(names []string, width vg.Length) (places []vg.Point, lines int) {
	left := vg.Length(0)
	for _, name := range names {
		need := min(width, thumbnail+thumbGap+reserve*textWidth(name, labelSize))
		if lines == 0 || left+need > width {
			left, lines = 0, lines+1
		}
		places = append(places, vg.Point{X: left, Y: vg.Length(lines-1) * legendLine})
		left += need + margin
	}
	return places, lines
}

// textWidth is the width of a text in the font of drawings.
func textWidth(text string, size font.Length) vg.Length {
	s := style(size, black)
	return s.Width(text)
}

// fit cuts a text that is too wide in the middle: names often differ at either end.
func fit(text string, size font.Length, width vg.Length) string {
	runes := []rune(text)
	for n := len(runes) - 1; n > 1 && reserve*textWidth(text, size) > width; n-- {
		text = string(runes[:(n+1)/2]) + "…" + string(runes[len(runes)-n/2:])
	}
	return text
}

// wrap breaks a text between words into lines that fit, the longest words of which are cut.
func wrap(text string, size font.Length, width vg.Length) string {
	var lines []string
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last >= 0 && reserve*textWidth(lines[last]+" "+word, size) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, fit(word, size, width))
	}
	return strings.Join(lines, "\n")
}
