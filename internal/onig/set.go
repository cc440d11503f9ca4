package onig

import (
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// set is a set of characters: the union of categories, spans and parts, intersected with all of and, and possibly
// negated.
type set struct {
	mask   uint32 // bits of categories
	spans  []span // sorted if there are more than eight
	parts  []*set
	and    []*set
	negate bool

	ascii    [utf8.RuneSelf]bool // has, of these
	category *[utf8.MaxRune + 1]category
}

// freeze computes the tables that make has fast. The set must not change after it.
func (s *set) freeze() *set {
	if s.category != nil {
		return s
	}
	s.category = &unicodeTables().category
	for _, inner := range s.parts {
		inner.freeze()
	}
	for _, inner := range s.and {
		inner.freeze()
	}
	for r := range rune(utf8.RuneSelf) {
		s.ascii[r] = s.slow(r)
	}
	return s
}

func (s *set) has(r rune) bool {
	if r < utf8.RuneSelf {
		return s.ascii[r]
	}
	return s.slow(r)
}

func (s *set) slow(r rune) bool {
	in := s.mask>>s.category[r]&1 != 0 || len(s.spans) > 0 && s.inSpans(r)
	for i := 0; !in && i < len(s.parts); i++ {
		in = s.parts[i].slow(r)
	}
	for i := 0; in && i < len(s.and); i++ {
		in = s.and[i].slow(r)
	}
	return in != s.negate
}

func (s *set) inSpans(r rune) bool {
	if len(s.spans) > 8 {
		return inSpans(s.spans, r)
	}
	for _, p := range s.spans {
		if p.lo <= r && r <= p.hi {
			return true
		}
	}
	return false
}

// at returns the length of the character of text at i if it is in the set, else 0. A byte that is not UTF-8 counts as
// U+FFFD.
func (s *set) at(text string, i int) int {
	if i >= len(text) {
		return 0
	}
	if c := text[i]; c < utf8.RuneSelf {
		if s.ascii[c] {
			return 1
		}
		return 0
	}
	r, n := utf8.DecodeRuneInString(text[i:])
	if s.slow(r) {
		return n
	}
	return 0
}

// run returns the end of the longest run of at most limit members from i on, and their number.
func (s *set) run(text string, i, limit int) (end, count int) {
	for ; count < limit && i < len(text); count++ {
		c := text[i]
		if c < utf8.RuneSelf {
			if !s.ascii[c] {
				break
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if !s.slow(r) {
			break
		}
		i += n
	}
	return i, count
}

// first marks the bytes that a member can begin with.
func (s *set) first(bytes *[256]bool) {
	for c, in := range s.ascii {
		bytes[c] = bytes[c] || in
	}
	for c := utf8.RuneSelf; c < 256; c++ {
		bytes[c] = true
	}
}

// overlaps reports whether a character may be in both sets; true if that is not known.
func (s *set) overlaps(o *set) bool {
	for c := range s.ascii {
		if s.ascii[c] && o.ascii[c] {
			return true
		}
	}
	a, b := s.mask, o.mask
	if s.negate {
		a = ^a
	}
	if o.negate {
		b = ^b
	}
	return !s.simple() || !o.simple() || a&b != 0
}

// simple reports whether categories alone decide about all characters above ASCII.
func (s *set) simple() bool {
	return len(s.parts) == 0 && len(s.and) == 0 &&
		!slices.ContainsFunc(s.spans, func(p span) bool { return p.hi >= utf8.RuneSelf })
}

// cased lists the characters that equal others in case-insensitive matching.
var cased = sync.OnceValue(func() []rune {
	var out []rune
	last := rune(unicode.CaseRanges[len(unicode.CaseRanges)-1].Hi)
	for r := range last + 1 {
		if unicode.SimpleFold(r) != r {
			out = append(out, r)
		}
	}
	return out
})

// folded returns the characters that equal r in case-insensitive matching.
func folded(r rune) *set {
	s := &set{spans: []span{{r, r}}}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		s.spans = append(s.spans, span{f, f})
	}
	return s
}

// merged sorts spans, and merges adjacent ones.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return int(a.lo - b.lo) })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, s.hi)
			continue
		}
		out = append(out, s)
	}
	return out
}
