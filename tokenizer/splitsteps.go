package tokenizer

import (
	"slices"
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
	out := pieceBuilder{tracked: p.origins != nil}
	for i := range len(p.text) {
		out.write(string(alphabet[p.text[i]]), p.originAt(i))
	}
	return out.piece(p.begin)
}

// fromByteLevelPiece is the inverse of toByteLevelPiece. Characters that are not in the alphabet stay.
func fromByteLevelPiece(p piece) piece {
	out := pieceBuilder{tracked: p.origins != nil}
	for i, r := range p.text {
		if b, ok := byteOf(r); ok {
			out.write(string([]byte{b}), p.originAt(i))
		} else {
			out.add(p.slice(i, i+utf8.RuneLen(r)))
		}
	}
	return out.piece(p.begin)
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

// behavior says what happens to delimiters: it converts cuts to the pieces to keep. The names are Hugging Face's.
type behavior func([]cut) []cut

var behaviors = map[string]behavior{
	"Isolated":           nil, // the-final--countdown -> the - final - - countdown
	"Removed":            removed,
	"MergedWithPrevious": mergedWithPrevious,
	"MergedWithNext":     mergedWithNext,
	"Contiguous":         contiguous,
}

// removed: the-final--countdown -> the final countdown
func removed(cuts []cut) []cut {
	return slices.DeleteFunc(cuts, func(s cut) bool { return s.match })
}

// contiguous: the-final--countdown -> the - final -- countdown
func contiguous(cuts []cut) []cut {
	out := cuts[:0]
	for _, s := range cuts {
		if n := len(out); n > 0 && out[n-1].match == s.match {
			out[n-1].end = s.end
			continue
		}
		out = append(out, s)
	}
	return out
}

// mergedWithPrevious: the-final--countdown -> the- final- - countdown
func mergedWithPrevious(cuts []cut) []cut {
	var out []cut
	afterMatch := false
	for _, s := range cuts {
		if s.match && !afterMatch && len(out) > 0 {
			out[len(out)-1].end = s.end
		} else {
			out = append(out, s)
		}
		afterMatch = s.match
	}
	return out
}

// mergedWithNext: the-final--countdown -> the -final - -countdown
func mergedWithNext(cuts []cut) []cut {
	var out []cut
	beforeMatch := false
	for _, s := range slices.Backward(cuts) {
		if s.match && !beforeMatch && len(out) > 0 {
			out[len(out)-1].start = s.start
		} else {
			out = append(out, s)
		}
		beforeMatch = s.match
	}
	slices.Reverse(out)
	return out
}
