package grammar

import (
	"slices"
	"unicode/utf8"
)

// byteEdge is followed by one byte in [lo, hi].
type byteEdge struct {
	lo, hi byte
	to     int32
}

// callEdge is followed by a text of a rule.
type callEdge struct {
	rule int32
	to   int32
}

// tokenEdge is followed by one token as a whole.
type tokenEdge struct {
	id int32
	to int32
}

// nfaState is a state of a nondeterministic automaton.
type nfaState struct {
	empty  []int32 // followed without input
	begin  []int32 // followed without input, before the first byte only
	end    []int32 // followed without input, after the last byte only
	bytes  []byteEdge
	calls  []callEdge
	tokens []tokenEdge
}

// nfa is a nondeterministic automaton under construction.
type nfa struct {
	states []nfaState
	budget *budget
}

// fragment adds an automaton to n that begins at the state from and returns the state where it ends. Nothing is added
// to the returned state but by the caller, and a fragment adds no edge into from but from states that it made.
type fragment func(n *nfa, from int32) int32

// add makes a state.
func (n *nfa) add() int32 {
	n.budget.addState()
	n.states = append(n.states, nfaState{})
	return int32(len(n.states) - 1)
}

func (n *nfa) addEmpty(from, to int32) {
	n.states[from].empty = append(n.states[from].empty, to)
}

func (n *nfa) addBytes(from int32, lo, hi byte, to int32) {
	n.states[from].bytes = append(n.states[from].bytes, byteEdge{lo, hi, to})
}

// nothing is the empty text.
func nothing(_ *nfa, from int32) int32 { return from }

// never is the fragment without any text.
func never(n *nfa, _ int32) int32 { return n.add() }

// literal is one text.
func literal(text string) fragment {
	return func(n *nfa, from int32) int32 {
		for i := range len(text) {
			to := n.add()
			n.addBytes(from, text[i], text[i], to)
			from = to
		}
		return from
	}
}

// byteSet is one byte in one of the ranges.
func byteSet(ranges ...[2]byte) fragment {
	return func(n *nfa, from int32) int32 {
		to := n.add()
		for _, r := range ranges {
			n.addBytes(from, r[0], r[1], to)
		}
		return to
	}
}

// call is a text of a rule.
func call(rule int32) fragment {
	return func(n *nfa, from int32) int32 {
		to := n.add()
		n.states[from].calls = append(n.states[from].calls, callEdge{rule, to})
		return to
	}
}

// token is one token as a whole.
func token(id int32) fragment {
	return func(n *nfa, from int32) int32 {
		to := n.add()
		n.states[from].tokens = append(n.states[from].tokens, tokenEdge{id, to})
		return to
	}
}

// sequence is one fragment after the other.
func sequence(parts ...fragment) fragment {
	return func(n *nfa, from int32) int32 {
		for _, part := range parts {
			from = part(n, from)
		}
		return from
	}
}

// anyOf is one of the fragments. Each begins at a state of its own, so that a loop in one cannot lead into another.
func anyOf(parts ...fragment) fragment {
	return func(n *nfa, from int32) int32 {
		to := n.add()
		for _, part := range parts {
			start := n.add()
			n.addEmpty(from, start)
			n.addEmpty(part(n, start), to)
		}
		return to
	}
}

// optional is the fragment or nothing.
func optional(part fragment) fragment { return repeat(part, 0, 1) }

// repeat is the fragment low to high times; high -1 is without bound.
func repeat(part fragment, low, high int) fragment {
	return func(n *nfa, from int32) int32 {
		n.budget.checkRepeat(max(low, high), "a repetition of")
		for range low {
			from = part(n, from)
		}
		if high < 0 {
			return star(n, from, part)
		}
		to := n.add()
		n.addEmpty(from, to)
		for range high - low {
			next := n.add()
			n.addEmpty(from, next)
			from = part(n, next)
			n.addEmpty(from, to)
		}
		return to
	}
}

// star is the fragment any number of times.
func star(n *nfa, from int32, part fragment) int32 {
	loop, to := n.add(), n.add()
	n.addEmpty(from, loop)
	n.addEmpty(loop, to)
	n.addEmpty(part(n, loop), loop)
	return to
}

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
			for _, whole := range anyRune { // without the surrogates
				if lo, hi := max(r.lo, whole.lo), min(r.hi, whole.hi); lo <= hi {
					n.addUTF8(from, to, runeRange{lo, hi}, shared)
				}
			}
		}
		return to
	}
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
	return slices.ContainsFunc(set, func(s runeRange) bool { return s.lo <= r && r <= s.hi })
}
