package grammar

import (
	"unicode/utf8"
)

// runeRange is a closed range of code points.
type runeRange struct{ lo, hi rune }

// anyRune is every code point that UTF-8 encodes.
var anyRune = []runeRange{{0, 0xD7FF}, {0xE000, utf8.MaxRune}}

// runes is the UTF-8 encoding of one code point of a set.
func runes(set []runeRange) fragment {
	return func(n *nfa, from int32) int32 {
		to := n.add()
		shared := map[byteEdge]int32{} // states by their only edge
		for _, r := range set {
			for _, r := range withoutSurrogates(r) {
				n.addUTF8(from, to, r, shared)
			}
		}
		return to
	}
}

// withoutSurrogates cuts U+D800 to U+DFFF, which UTF-8 does not encode, out of a range.
func withoutSurrogates(r runeRange) []runeRange {
	var parts []runeRange
	for _, whole := range anyRune {
		if lo, hi := max(r.lo, whole.lo), min(r.hi, whole.hi); lo <= hi {
			parts = append(parts, runeRange{lo, hi})
		}
	}
	return parts
}

// addUTF8 adds the encodings of a range: it is cut until each part is a product of ranges of bytes.
func (n *nfa) addUTF8(from, to int32, r runeRange, shared map[byteEdge]int32) {
	n.budget.spend(1)
	if lower, upper, ok := cutUTF8(r); ok {
		n.addUTF8(from, to, lower, shared)
		n.addUTF8(from, to, upper, shared)
		return
	}
	lo, hi := utf8.AppendRune(nil, r.lo), utf8.AppendRune(nil, r.hi)
	for i := len(lo) - 1; i > 0; i-- {
		edge := byteEdge{lo[i], hi[i], to}
		state, ok := shared[edge]
		if !ok {
			state = n.add()
			n.addBytes(state, lo[i], hi[i], to)
			shared[edge] = state
		}
		to = state
	}
	n.addBytes(from, lo[0], hi[0], to)
}

// cutUTF8 cuts a range at the first place where the number of bytes changes, or where a continuation byte does not run
// over all its values although an earlier byte changes.
func cutUTF8(r runeRange) (lower, upper runeRange, ok bool) {
	for _, last := range []rune{0x7F, 0x7FF, 0xFFFF} {
		if r.lo <= last && last < r.hi {
			return runeRange{r.lo, last}, runeRange{last + 1, r.hi}, true
		}
	}
	for bits := 6; bits < 6*utf8.RuneLen(r.lo); bits += 6 {
		low := rune(1)<<bits - 1
		if r.lo&^low == r.hi&^low {
			continue
		}
		if r.lo&low != 0 {
			return runeRange{r.lo, r.lo | low}, runeRange{(r.lo | low) + 1, r.hi}, true
		}
		if r.hi&low != low {
			return runeRange{r.lo, (r.hi &^ low) - 1}, runeRange{r.hi &^ low, r.hi}, true
		}
	}
	return r, r, false
}

// without returns the part of an ordered set outside another ordered set.
func without(set, removed []runeRange) []runeRange {
	var out []runeRange
	for _, r := range set {
		for _, cut := range removed {
			if cut.hi < r.lo || cut.lo > r.hi {
				continue
			}
			if cut.lo > r.lo {
				out = append(out, runeRange{r.lo, cut.lo - 1})
			}
			r.lo = cut.hi + 1
		}
		if r.lo <= r.hi {
			out = append(out, r)
		}
	}
	return out
}

// contains reports whether a code point is in a set.
func contains(set []runeRange, r rune) bool {
	for _, s := range set {
		if s.lo <= r && r <= s.hi {
			return true
		}
	}
	return false
}
