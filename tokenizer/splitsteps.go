package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// step cuts or rewrites a piece before the model sees it.
type step interface {
	apply(p piece, emit func(piece))
}

// runSteps applies steps one after the other, and emits the pieces that are not empty.
func runSteps(steps []step, p piece, emit func(piece)) {
	switch {
	case p.text == "":
	case len(steps) == 0:
		emit(p)
	case len(steps) == 1:
		steps[0].apply(p, func(q piece) {
			if q.text != "" {
				emit(q)
			}
		})
	default:
		steps[0].apply(p, func(q piece) { runSteps(steps[1:], q, emit) })
	}
}

// prefixStep puts a space before a piece that does not begin with one.
type prefixStep struct{}

func (prefixStep) apply(p piece, emit func(piece)) {
	if !strings.HasPrefix(p.text, " ") {
		p = p.prepend(" ")
	}
	emit(p)
}

// spellStep writes bytes in the alphabet of byte-level models.
type spellStep struct{}

func (spellStep) apply(p piece, emit func(piece)) { emit(spelled(p)) }

// spelled returns the piece in the alphabet of byte-level models.
func spelled(p piece) piece {
	var text strings.Builder
	q := piece{begin: p.begin}
	for i := range len(p.text) {
		n, _ := text.WriteRune(alphabet[p.text[i]])
		if p.origins != nil {
			for range n {
				q.origins = append(q.origins, p.origins[i])
			}
		}
	}
	q.text = text.String()
	return q
}

// unspelled is the inverse of spelled. Characters that are not in the alphabet stay.
func unspelled(p piece) piece {
	text := make([]byte, 0, len(p.text))
	q := piece{begin: p.begin}
	for i, r := range p.text {
		n := utf8.RuneLen(r)
		b, ok := byteOf(r)
		if ok {
			text = append(text, b)
			n = 1
		} else {
			text = append(text, p.text[i:i+n]...)
		}
		if p.origins != nil {
			q.origins = append(q.origins, p.origins[i:i+n]...)
		}
	}
	q.text = string(text)
	return q
}

// chunkStep cuts pieces of a fixed number of characters.
type chunkStep int

func (n chunkStep) apply(p piece, emit func(piece)) {
	start, count := 0, 0
	for i := range p.text {
		if count == int(n) {
			emit(p.slice(start, i))
			start, count = i, 0
		}
		count++
	}
	emit(p.slice(start, len(p.text)))
}

// cutStep cuts a text at the matches of a pattern.
type cutStep struct {
	find     matcher
	invert   bool     // what does not match is the delimiter
	behavior behavior // nil: each cut is a piece
}

func (d cutStep) apply(p piece, emit func(piece)) {
	if d.behavior == nil {
		d.find(p.text, func(c cut) { emit(p.slice(c.start, c.end)) })
		return
	}
	var cuts []cut
	d.find(p.text, func(c cut) {
		c.match = c.match != d.invert
		cuts = append(cuts, c)
	})
	for _, c := range d.behavior(cuts) {
		emit(p.slice(c.start, c.end))
	}
}
