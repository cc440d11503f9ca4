package tokenizer

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// The normalization forms of Unicode, as Hugging Face's library sees them: with tables of Unicode 9, see laterMarks.

func formC(p piece) piece {
	if p.origins == nil {
		p.text = nfc(p.text)
		return p
	}
	return p.form(norm.NFC, decomposition{}, true)
}

func formD(p piece) piece  { return p.form(norm.NFD, decomposition{}, false) }
func formKC(p piece) piece { return p.form(norm.NFKC, decomposition{compatible: true}, true) }
func formKD(p piece) piece { return p.form(norm.NFKD, decomposition{compatible: true}, false) }

// form is a normalization by its definition (UAX #15): decompose, sort each run of combining marks by class, compose.
func (p piece) form(quick norm.Form, d decomposition, compose bool) piece {
	if quick.IsNormalString(p.text) {
		return p
	}
	changes := d.all(p.text)
	if compose {
		changes = composed(changes)
	}
	return p.rewrite(changes)
}

// decomposition takes characters apart.
type decomposition struct{ compatible bool }

func (d decomposition) all(s string) []change {
	var out []change
	start := 0 // of the run of marks at the end of out
	for _, r := range s {
		for i, part := range d.of(r) {
			if oldClass(part) == 0 {
				sortMarks(out[start:])
				start = len(out) + 1
			}
			out = append(out, change{part, min(i, 1)})
		}
	}
	if start < len(out) {
		sortMarks(out[start:])
	}
	return out
}

func (d decomposition) of(r rune) []rune {
	if unicode.Is(laterMarks, r) || d.compatible && unicode.Is(laterCompatible, r) {
		return []rune{r}
	}
	if d.compatible {
		return []rune(norm.NFKD.String(string(r)))
	}
	return []rune(norm.NFD.String(string(r)))
}

func sortMarks(marks []change) {
	slices.SortStableFunc(marks, func(a, b change) int { return int(oldClass(a.char)) - int(oldClass(b.char)) })
}

// oldClass is the canonical combining class in Unicode 9; 0 is a starter.
func oldClass(r rune) uint8 {
	if unicode.Is(laterMarks, r) {
		return 0
	}
	return class(r)
}

// composed joins each starter with the marks behind it that nothing blocks.
func composed(changes []change) []change {
	out := changes[:0]
	starter := -1 // index in out of the last starter
	for _, c := range changes {
		if starter >= 0 && !blocked(out[starter+1:], c.char) {
			if joined, ok := pair(out[starter].char, c.char); ok {
				out[starter] = change{joined, out[starter].delta + c.delta - 1}
				continue
			}
		}
		if oldClass(c.char) == 0 {
			starter = len(out)
		}
		out = append(out, c)
	}
	return out
}

// blocked reports whether one of the characters between a starter and r keeps the two apart.
func blocked(between []change, r rune) bool {
	if len(between) == 0 {
		return false
	}
	last := oldClass(between[len(between)-1].char)
	return last == 0 || last >= oldClass(r)
}

// pair composes two characters. x/text compares the low 16 bits only, so what it says is checked.
func pair(a, b rune) (rune, bool) {
	if unicode.Is(laterMarks, a) || unicode.Is(laterMarks, b) {
		return 0, false
	}
	both := []rune(norm.NFC.String(string(a) + string(b)))
	if len(both) != 1 || norm.NFD.String(string(both)) != norm.NFD.String(string(a))+norm.NFD.String(string(b)) {
		return 0, false
	}
	return both[0], true
}

// class is the canonical combining class.
func class(r rune) uint8 { return norm.NFC.PropertiesString(string(r)).CCC() }

// joiner is U+034F, combining grapheme joiner.
const joiner = "\u034f"

// nfc is form C where nobody asks for offsets: most texts are in it already, and x/text finds that out quickly. It does
// something else in three cases: it puts a joiner after each run of 30 combining marks ("stream-safe"), it composes
// across starters that can join what is before them, as in "o\u09be\u0309", and it takes a character above U+FFFF for the
// one with the same low 16 bits. Nothing else adds or removes joiners, so counting them tells of the first.
func nfc(s string) string {
	if norm.NFC.IsNormalString(s) {
		return s
	}
	exact := !strings.ContainsFunc(s, func(r rune) bool { return r > 0xFFFF || unicode.Is(laterMarks, r) || joinsBack(r) })
	if exact {
		out := norm.NFC.String(s)
		if strings.Count(out, joiner) == strings.Count(s, joiner) {
			return out
		}
	}
	return piece{text: s}.rewrite(composed(decomposition{}.all(s))).text
}

// joinsBack reports whether r is a starter that composes with one before it.
func joinsBack(r rune) bool {
	p := norm.NFC.PropertiesString(string(r))
	return p.CCC() == 0 && !p.BoundaryBefore()
}
