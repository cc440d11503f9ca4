package tokenizer

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The normalization forms of the reference have tables of Unicode 9; see laterMarks.

func formC(p piece) piece  { return p.form(norm.NFC, decomposition{}, true) }
func formD(p piece) piece  { return p.form(norm.NFD, decomposition{}, false) }
func formKC(p piece) piece { return p.form(norm.NFKC, decomposition{compatible: true}, true) }
func formKD(p piece) piece { return p.form(norm.NFKD, decomposition{compatible: true}, false) }

// form normalizes. Most texts are normal already, which x/text detects quickly. Its normalization of others differs
// from the definition: it inserts a joiner after each run of 30 combining marks ("stream-safe"), it composes across
// starters that can combine with what precedes them, and it confuses characters above U+FFFF with the same low 16 bits.
// So the parts that are not normal are normalized by the definition. ASCII characters begin a new part: nothing
// composes or reorders across them.
func (p piece) form(quick norm.Form, d decomposition, compose bool) piece {
	if quick.IsNormalString(p.text) {
		return p
	}
	out := pieceBuilder{tracked: p.origins != nil}
	for start := 0; start < len(p.text); {
		end := nextASCII(p.text, start+1)
		if quick.IsNormalString(p.text[start:end]) {
			out.add(p.slice(start, end))
		} else {
			out.add(p.slice(start, end).rewrite(d.form(p.text[start:end], compose)))
		}
		start = end
	}
	return out.piece(p.begin)
}

// nextASCII returns the offset, from i on, of the next ASCII character that precedes one that is not ASCII; after a
// thousand bytes, of the next ASCII character.
func nextASCII(s string, i int) int {
	start := i
	for ; i < len(s); i++ {
		if s[i] < utf8.RuneSelf && (i+1 == len(s) || s[i+1] >= utf8.RuneSelf || i-start > 1000) {
			return i
		}
	}
	return i
}

// form normalizes by the definition (UAX #15): decompose, sort each run of combining marks by class, compose.
func (d decomposition) form(s string, compose bool) []change {
	var changes []change
	start := 0 // of the run of marks at the end of out
	for _, r := range s {
		for i, part := range d.of(r) {
			if oldClass(part) == 0 {
				sortMarks(changes[start:])
				start = len(changes) + 1
			}
			changes = append(changes, change{part, min(i, 1)})
		}
	}
	if start < len(changes) {
		sortMarks(changes[start:])
	}
	if compose {
		changes = composed(changes)
	}
	return changes
}

// decomposition decomposes characters.
type decomposition struct{ compatible bool }

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
	return norm.NFC.PropertiesString(string(r)).CCC()
}

// composed composes each starter with the marks after it that are not blocked.
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

// blocked reports whether one of the characters between a starter and r prevents the two from composing.
func blocked(between []change, r rune) bool {
	if len(between) == 0 {
		return false
	}
	last := oldClass(between[len(between)-1].char)
	return last == 0 || last >= oldClass(r)
}

// pair composes two characters. x/text compares only their low 16 bits, so its result is checked.
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
