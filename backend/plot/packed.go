package plot

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/goart-dev/art/internal/pack"
	"github.com/goart-dev/art/internal/quantity"
)

// Packed is a drawing of what a training computes at once: rectangles of tokens, a row below the other, and in the rows
// what they hold. Those of a micro-batch stand side by side.
type Packed struct {
	Title string
	// Updates are the micro-batches of optimizer steps: Packed of backend/local reads those of a stored step.
	Updates [][]*pack.MicroBatch
}

// part is a micro-batch.
type part struct {
	name       string
	rectangles []rectangle
}

// rectangle has rows of so many tokens. What no span covers is padding.
type rectangle struct {
	rows, length int
	spans        []span
}

// span is a part of a row: tokens from start up to end. A later one covers an earlier one.
type span struct {
	row, start, end int
	kind            kind
}

// kind is what tokens are there for.
type kind int

const (
	read    kind = iota // by one sequence
	shared              // by several sequences
	trained             // the token that follows is trained on
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

// parts returns the micro-batches with their names.
func (p *Packed) parts() (list []part) {
	for i, update := range p.Updates {
		for k, m := range update {
			name := fmt.Sprintf("update %d, micro-batch %d: %s, %d trained", i+1, k+1,
				quantity.Of(m.Layout.Tokens(), "token"), m.Tokens.NumReal)
			list = append(list, part{name, rectanglesOf(m)})
		}
	}
	return list
}

// rectanglesOf are those of a micro-batch, with what their tokens are there for.
func rectanglesOf(m *pack.MicroBatch) []rectangle {
	list := []rectangle{{rows: m.Rows, length: m.Length}}
	for _, b := range m.Branches {
		if b.Rows > 0 {
			list = append(list, rectangle{rows: b.Rows, length: b.Length})
		}
	}
	for at, n := range readers(m) {
		switch {
		case n == 1:
			addToken(list, at, read)
		case n > 1:
			addToken(list, at, shared)
		}
	}
	for _, at := range m.Tokens.Position[:m.Tokens.NumReal] {
		addToken(list, int(at), trained)
	}
	return list
}

// readers counts the sequences that read each token of a micro-batch, none of padding. A sequence is read up to the
// token that its last trained one follows.
func readers(m *pack.MicroBatch) []int {
	counts := make([]int, m.Layout.Tokens())
	of := m.Tokens.Sequence[:m.Tokens.NumReal]
	for n, position := range m.Tokens.Position[:len(of)] {
		if n+1 < len(of) && of[n+1] == of[n] {
			continue
		}
		for _, at := range attended(m, int(position)) {
			counts[at]++
		}
	}
	return counts
}

// attended lists the tokens that one attends to, itself included.
func attended(m *pack.MicroBatch, at int) (list []int32) {
	from, starts, keys := m.Rows*m.Length, m.Starts, m.Keys
	for _, b := range m.Branches {
		if at >= from && at < from+b.Rows*b.Length {
			row, column := (at-from)/b.Length, (at-from)%b.Length
			return keys[row*b.Keys:][:int(starts[row])+column+1]
		}
		from, starts, keys = from+b.Rows*b.Length, starts[b.Rows:], keys[b.Rows*b.Keys:]
	}
	for i := at / m.Length * m.Length; i <= at; i++ {
		list = append(list, int32(i))
	}
	return list
}

// addToken marks a token, counted through all rectangles.
func addToken(list []rectangle, at int, kind kind) {
	for i := range list {
		r := &list[i]
		if n := r.rows * r.length; at >= n {
			at -= n
			continue
		}
		row, column := at/r.length, at%r.length
		if last := len(r.spans) - 1; last >= 0 && r.spans[last] == (span{row, r.spans[last].start, column, kind}) {
			r.spans[last].end++
			return
		}
		r.spans = append(r.spans, span{row, column, column + 1, kind})
		return
	}
}

// rows are those of the highest rectangle.
func (p part) rows() (n int) {
	for _, r := range p.rectangles {
		n = max(n, r.rows)
	}
	return n
}

func (p *Packed) size() (width, height vg.Length) {
	height = 2*margin + 2*titleSize + legendLine + margin
	for _, part := range p.parts() {
		height += partGap + vg.Length(part.rows())*rowHeight
	}
	return chartWidth, height
}

// scaleOf is the width of a token with which the longest part fits.
func scaleOf(parts []part) vg.Length {
	least := vg.Length(8)
	for _, part := range parts {
		tokens, gaps := 0, vg.Length(0)
		for _, r := range part.rectangles {
			tokens, gaps = tokens+r.length, gaps+blockGap
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
	parts := p.parts()
	top, scale := c.Max.Y, scaleOf(parts)
	name := style(labelSize, black)
	name.YAlign = draw.YTop
	for _, part := range parts {
		c.FillText(name, vg.Point{X: c.Min.X, Y: top}, part.name)
		top -= partGap - blockGap
		left := c.Min.X
		for _, r := range part.rectangles {
			r.draw(c, vg.Point{X: left, Y: top}, scale)
			left += vg.Length(r.length)*scale + blockGap
		}
		top -= vg.Length(part.rows())*rowHeight + blockGap
	}
	return nil
}

// draw draws a rectangle below and right of a point.
func (r rectangle) draw(c draw.Canvas, at vg.Point, scale vg.Length) {
	bar := func(row, start, end int, colour color.Color) {
		box := vg.Rectangle{
			Min: vg.Point{X: at.X + vg.Length(start)*scale, Y: at.Y - vg.Length(row+1)*rowHeight + 1},
			Max: vg.Point{X: at.X + vg.Length(end)*scale, Y: at.Y - vg.Length(row)*rowHeight},
		}
		c.SetColor(colour)
		c.Fill(box.Path())
	}
	for row := range r.rows {
		bar(row, 0, r.length, lightGrey)
	}
	for _, s := range r.spans {
		bar(s.row, s.start, s.end, kinds[s.kind].colour)
	}
}

// swatch is a colour in a legend.
type swatch struct{ colour color.Color }

// Thumbnail fills the canvas: it implements [plot.Thumbnailer].
func (s swatch) Thumbnail(c *draw.Canvas) {
	c.SetColor(s.colour)
	c.Fill(c.Rectangle.Path())
}
