package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// step splits or rewrites a piece.
type step interface {
	apply(p piece, emit func(piece))
}

// runSteps applies steps in order, and emits the pieces that are not empty.
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

// byteLevelStep converts pieces to the byte-level alphabet.
type byteLevelStep struct{}

func (byteLevelStep) apply(p piece, emit func(piece)) { emit(toByteLevelPiece(p)) }

// toByteLevelPiece returns the piece in the byte-level alphabet.
func toByteLevelPiece(p piece) piece {
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

// fromByteLevelPiece is the inverse of toByteLevelPiece. Characters that are not in the alphabet stay.
func fromByteLevelPiece(p piece) piece {
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

// chunkStep splits into pieces of a fixed number of characters.
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

// cutStep splits a text at the matches of a pattern.
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
