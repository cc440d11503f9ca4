package plot

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Packed is a drawing of what a training computes at once: rectangles of tokens, a row below the other, and in the rows
// what they hold.
type Packed struct {
	Title string
	Parts []Part
}

// Part is a micro-batch. Its rectangles stand side by side.
type Part struct {
	Name       string
	Rectangles []Rectangle
}

// Rectangle has rows of so many tokens. What no span covers is padding.
type Rectangle struct {
	Rows, Length int
	Spans        []Span
}

// Span is a part of a row: tokens from Start up to End. A later one covers an earlier one.
type Span struct {
	Row, Start, End int
	Kind            Kind
}

// Kind is what tokens are there for.
type Kind int

// Kinds.
const (
	Read    Kind = iota // by one sequence
	Shared              // by several sequences
	Trained             // the token that follows is trained on
)

const (
	rowHeight = 6  // points
	partGap   = 26 // between parts, with the name
	blockGap  = 6  // between rectangles
	maxRow    = chartWidth - 2*margin
)

// kinds are the colours and names of the legend.
var kinds = []struct {
	name   string
	colour color.Color
}{{"read by one sequence", palette[5]}, {"shared", palette[2]}, {"trained", palette[0]}, {"padding", lightGrey}}

// rows are those of the highest rectangle.
func (p Part) rows() (n int) {
	for _, r := range p.Rectangles {
		n = max(n, r.Rows)
	}
	return n
}

func (p *Packed) size() (width, height vg.Length) {
	height = 2*margin + 2*titleSize + legendLine + margin
	for _, part := range p.Parts {
		height += partGap + vg.Length(part.rows())*rowHeight
	}
	return chartWidth, height
}

// scale is the width of a token with which the longest part fits.
func (p *Packed) scale() vg.Length {
	least := vg.Length(8)
	for _, part := range p.Parts {
		tokens, gaps := 0, vg.Length(0)
		for _, r := range part.Rectangles {
			tokens, gaps = tokens+r.Length, gaps+blockGap
		}
		if tokens > 0 {
			least = min(least, (maxRow-gaps)/vg.Length(tokens))
		}
	}
	return least
}

func (p *Packed) draw(c draw.Canvas) error {
	c = draw.Crop(c, margin, -margin, margin, -margin)
	c = drawTitle(c, p.Title)
	var entries []legendEntry
	for _, k := range kinds {
		entries = append(entries, legendEntry{k.name, []plot.Thumbnailer{swatch{k.colour}}})
	}
	c = drawLegend(c, entries)
	top, scale := c.Max.Y, p.scale()
	name := style(labelSize, black)
	name.YAlign = draw.YTop
	for _, part := range p.Parts {
		c.FillText(name, vg.Point{X: c.Min.X, Y: top}, part.Name)
		top -= partGap - blockGap
		left := c.Min.X
		for _, r := range part.Rectangles {
			r.draw(c, vg.Point{X: left, Y: top}, scale)
			left += vg.Length(r.Length)*scale + blockGap
		}
		top -= vg.Length(part.rows())*rowHeight + blockGap
	}
	return nil
}

// draw draws a rectangle below and right of a point.
func (r Rectangle) draw(c draw.Canvas, at vg.Point, scale vg.Length) {
	bar := func(row, start, end int, colour color.Color) {
		box := vg.Rectangle{
			Min: vg.Point{X: at.X + vg.Length(start)*scale, Y: at.Y - vg.Length(row+1)*rowHeight + 1},
			Max: vg.Point{X: at.X + vg.Length(end)*scale, Y: at.Y - vg.Length(row)*rowHeight},
		}
		c.SetColor(colour)
		c.Fill(box.Path())
	}
	for row := range r.Rows {
		bar(row, 0, r.Length, lightGrey)
	}
	for _, s := range r.Spans {
		bar(s.Row, s.Start, s.End, kinds[s.Kind].colour)
	}
}

// swatch is a colour in a legend.
type swatch struct{ colour color.Color }

// Thumbnail fills the canvas: it implements [plot.Thumbnailer].
func (s swatch) Thumbnail(c *draw.Canvas) {
	c.SetColor(s.colour)
	c.Fill(c.Rectangle.Path())
}
