package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// span is a range of bytes, the end not included.
type span struct{ start, end int }

// piece is a part of the text on its way to tokens. For offsets, it keeps track of where it comes from.
type piece struct {
	text    string
	origins []span // for each byte of text, the bytes of the original; nil if offsets are not needed
	begin   int    // where text begins in the original; valid if origins is nil and nothing was rewritten
}

// newPiece returns a whole text. The origin of each byte is its character.
func newPiece(text string, tracked bool) piece {
	p := piece{text: text}
	if !tracked {
		return p
	}
	p.origins = make([]span, 0, len(text))
	for i := 0; i < len(text); {
		_, n := utf8.DecodeRuneInString(text[i:])
		for range n {
			p.origins = append(p.origins, span{i, i + n})
		}
		i += n
	}
	return p
}

func (p piece) slice(start, end int) piece {
	out := piece{text: p.text[start:end], begin: p.begin + start}
	if p.origins != nil {
		out.origins = p.origins[start:end]
	}
	return out
}

// first reports whether the piece is at the beginning of the original.
func (p piece) first() bool {
	if len(p.origins) > 0 {
		return p.origins[0].start == 0
	}
	return p.begin == 0
}

// origin returns the origin of the bytes from start to end.
func (p piece) origin(start, end int) span {
	if start >= end || end > len(p.origins) {
		return span{}
	}
	return span{p.origins[start].start, p.origins[end-1].end}
}

// change is one character of a rewritten text. delta says what it replaces: 0 one character, 1 none (it is inserted),
// and -n one character and the n after it.
type change struct {
	char  rune
	delta int
}

// rewrite returns the piece with new text. The origin of an inserted character is that of the character before it, as
// in the reference.
func (p piece) rewrite(changes []change) piece {
	out := pieceBuilder{tracked: p.origins != nil}
	at := 0 // bytes of p.text that were replaced
	for _, c := range changes {
		from := at
		if c.delta > 0 {
			from--
		} else {
			for range 1 - c.delta {
				_, n := utf8.DecodeRuneInString(p.text[at:])
				at += n
			}
		}
		out.write(string(c.char), p.originAt(from))
	}
	return out.piece(p.begin)
}

// originAt returns the origin of one byte; an empty one before the first.
func (p piece) originAt(i int) span {
	if i < 0 || i >= len(p.origins) {
		return span{}
	}
	return p.origins[i]
}

// prepend puts text before a piece that is not empty. The origin of the text is the piece's first character.
func (p piece) prepend(text string) piece {
	if p.text == "" {
		return p
	}
	out := piece{text: text + p.text, begin: p.begin}
	if p.origins != nil {
		out.origins = append(slices.Repeat(p.origins[:1], len(text)), p.origins...)
	}
	return out
}

// replaced returns the piece with each match of find replaced by text, whose origin is the end of the match.
func (p piece) replaced(find matcher, text string) piece {
	out := pieceBuilder{tracked: p.origins != nil}
	find(p.text, func(c cut) {
		if c.match {
			out.write(text, p.originAt(c.end-1))
		} else {
			out.add(p.slice(c.start, c.end))
		}
	})
	return out.piece(p.begin)
}

// pieceBuilder joins pieces.
type pieceBuilder struct {
	text    strings.Builder
	origins []span
	tracked bool
}

func (b *pieceBuilder) add(p piece) {
	b.text.WriteString(p.text)
	if b.tracked {
		b.origins = append(b.origins, p.origins...)
	}
}

// write adds text with one origin.
func (b *pieceBuilder) write(text string, from span) {
	b.text.WriteString(text)
	for i := 0; b.tracked && i < len(text); i++ {
		b.origins = append(b.origins, from)
	}
}

func (b *pieceBuilder) piece(begin int) piece {
	return piece{text: b.text.String(), origins: b.origins, begin: begin}
}
