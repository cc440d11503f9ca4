package tokenizer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// joiner is U+034F, combining grapheme joiner.
const joiner = "\u034f"

// nfc returns s in Unicode's normalization form C, as Hugging Face's library sees it: see laterMarks.
func nfc(s string) string {
	if norm.NFC.IsNormalString(s) {
		return s
	}
	var b strings.Builder
	for {
		at := strings.IndexFunc(s, func(r rune) bool { return unicode.Is(laterMarks, r) })
		if at < 0 {
			b.WriteString(nfcExact(s))
			return b.String()
		}
		b.WriteString(nfcExact(s[:at]))
		_, n := utf8.DecodeRuneInString(s[at:])
		b.WriteString(s[at : at+n])
		s = s[at+n:]
	}
}

// nfcExact is NFC where x/text is not: it puts a joiner after each run of 30 combining marks ("stream-safe"), and it
// composes across starters that can join what is before them, as in "o\u09be\u0309". Nothing else adds or removes
// joiners, so counting them tells of the first.
func nfcExact(s string) string {
	if strings.ContainsFunc(s, joinsBack) {
		return nfcByRune(s)
	}
	out := norm.NFC.String(s)
	if strings.Count(out, joiner) != strings.Count(s, joiner) {
		return nfcByRune(s)
	}
	return out
}

// joinsBack reports whether r is a starter that composes with one before it.
func joinsBack(r rune) bool {
	p := norm.NFC.PropertiesString(string(r))
	return p.CCC() == 0 && !p.BoundaryBefore()
}

// nfcByRune is NFC by its definition (UAX #15): decompose, sort each run of combining marks by class, compose.
func nfcByRune(s string) string {
	runes := decompose(s)
	for start := 0; start < len(runes); start++ {
		end := start
		for end < len(runes) && class(runes[end]) != 0 {
			end++
		}
		slices.SortStableFunc(runes[start:end], func(a, b rune) int { return int(class(a)) - int(class(b)) })
		start = end
	}
	return string(compose(runes))
}

func decompose(s string) []rune {
	var out []rune
	for _, r := range s {
		out = append(out, []rune(norm.NFD.String(string(r)))...)
	}
	return out
}

// compose joins each starter with the marks behind it that nothing blocks.
func compose(runes []rune) []rune {
	out := runes[:0]
	starter := -1 // index in out of the last starter
	for _, r := range runes {
		if starter >= 0 && !blocked(out[starter+1:], r) {
			if c, ok := pair(out[starter], r); ok {
				out[starter] = c
				continue
			}
		}
		if class(r) == 0 {
			starter = len(out)
		}
		out = append(out, r)
	}
	return out
}

// blocked reports whether one of the runes between a starter and r keeps the two apart.
func blocked(between []rune, r rune) bool {
	if len(between) == 0 {
		return false
	}
	last := class(between[len(between)-1])
	return last == 0 || last >= class(r)
}

func pair(a, b rune) (rune, bool) {
	both := []rune(norm.NFC.String(string(a) + string(b)))
	if len(both) == 1 {
		return both[0], true
	}
	return 0, false
}

// class is the canonical combining class; 0 is a starter.
func class(r rune) uint8 { return norm.NFC.PropertiesString(string(r)).CCC() }
