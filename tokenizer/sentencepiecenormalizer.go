package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// spNormalizer rewrites text as SentencePiece does: it replaces the longest keys of a table, trims and collapses
// spaces, prepends a space, and writes spaces as "▁".
type spNormalizer struct {
	chars       *charsMap // nil if nothing is replaced
	keep        finder    // user-defined pieces, which stay as they are
	dummyPrefix bool
	trim        bool // spaces at the ends are dropped, and others collapsed
	escape      bool // spaces are written as "▁"
}

// next returns what a prefix of text becomes, and the length of that prefix.
func (n *spNormalizer) next(text string) (out string, length int) {
	if n.keep.any() {
		if p := n.keep.at(text, 0); p != nil {
			return p.text, len(p.text)
		}
	}
	if n.chars != nil {
		n.chars.prefixes(text, func(size int, value uint32) bool {
			out, length = n.chars.replacement(value), size
			return true
		})
		if length > 0 {
			return out, length
		}
	}
	_, size := utf8.DecodeRuneInString(text)
	return text[:size], size
}

// normalize rewrites a piece. The origin of each character is what it replaces.
func (n *spNormalizer) normalize(p piece) piece {
	space := " "
	if n.escape {
		space = string(metaspaceRune)
	}
	out := pieceBuilder{tracked: p.origins != nil}
	afterSpace, kept := n.trim, 0 // kept is the length up to the spaces at the end
	for at := 0; at < len(p.text); {
		text, length := n.next(p.text[at:])
		from := p.origin(at, at+length)
		for afterSpace && strings.HasPrefix(text, " ") {
			text = text[1:]
		}
		if text != "" {
			if out.text.Len() == 0 && n.dummyPrefix {
				out.write(space, from)
			}
			for i := 0; i < len(text); {
				_, size := utf8.DecodeRuneInString(text[i:])
				switch char := text[i : i+size]; char {
				case " ", space: // a "▁" in the text is trimmed, too
					out.write(space, from)
				default:
					out.write(char, from)
					kept = out.text.Len()
				}
				i += size
			}
			afterSpace = n.trim && strings.HasSuffix(text, " ")
		}
		at += length
	}
	q := out.piece(p.begin)
	if n.trim {
		q = q.slice(0, kept)
	}
	return q
}
