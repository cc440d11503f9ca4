package grammar

import (
	"unicode"
	"unicode/utf8"
)

// Most tokens are plain: whole characters that a JSON string holds as they are. In most states of a string all of them
// are allowed, which is proved once for a state by following every plain text of maxPlain characters through the few
// configurations that they lead to. Then only the other tokens are checked one by one. Where plain texts are not
// allowed because some punctuation is not, as in free text up to a tag, plain texts of words still may be. The idea is
// that of the slices of llguidance (https://github.com/guidance-ai/llguidance/blob/main/docs/optimizations.md).

// maxPlain is the most characters of a plain token.
const maxPlain = 16

// slice is the plain tokens of an alphabet.
type slice struct {
	alphabet *[256]bool // the ASCII bytes among its characters, and all others
	tokens   []uint32   // a bit for each id
	rest     *trie      // the other tokens
}

// numSlices is the number of alphabets: all plain characters, and those of words.
const numSlices = 2

// numUTF8 is the number of states between the bytes of valid UTF-8; 0 is between characters.
const numUTF8 = 8

// utf8Edge leads from one state between bytes to another (The Unicode Standard, table 3-7).
type utf8Edge struct {
	lo, hi byte
	to     uint8
}

// utf8Edges are the bytes of characters, without the control characters of ASCII.
var utf8Edges = [numUTF8][]utf8Edge{
	0: {
		{0x20, 0x7F, 0}, {0xC2, 0xDF, 1}, {0xE0, 0xE0, 4}, {0xE1, 0xEC, 2},
		{0xED, 0xED, 5}, {0xEE, 0xEF, 2}, {0xF0, 0xF0, 6}, {0xF1, 0xF3, 3}, {0xF4, 0xF4, 7},
	},
	1: {{0x80, 0xBF, 0}},
	2: {{0x80, 0xBF, 1}},
	3: {{0x80, 0xBF, 2}},
	4: {{0xA0, 0xBF, 1}},
	5: {{0x80, 0x9F, 1}},
	6: {{0x90, 0xBF, 2}},
	7: {{0x80, 0x8F, 2}},
}

// alphabet returns the bytes that are tokens of their own and are not excluded.
func (v *Vocabulary) alphabet(excluded func(b byte) bool) *[256]bool {
	a := v.writable
	for b := range a {
		a[b] = a[b] && b >= 0x20 && !excluded(byte(b))
	}
	return &a
}

// setSlices makes the slices of tokens, which are in the order of their texts.
func (v *Vocabulary) setSlices(ids []int32) {
	plain := v.alphabet(func(b byte) bool { return b == '"' || b == '\\' })
	words := v.alphabet(func(b byte) bool {
		return b != ' ' && b < 0x80 && !unicode.IsLetter(rune(b)) && !unicode.IsDigit(rune(b))
	})
	for i, alphabet := range []*[256]bool{plain, words} {
		s := slice{alphabet: alphabet, tokens: make([]uint32, v.MaskWords())}
		var others []int32
		for _, id := range ids {
			if s.holds(v.tokens[id]) {
				setBit(s.tokens, id)
			} else {
				others = append(others, id)
			}
		}
		s.rest = newTrie(v.tokens, others)
		v.slices[i] = s
	}
}

// holds reports whether a token consists of at most maxPlain characters of the alphabet.
func (s *slice) holds(text []byte) bool {
	if !utf8.Valid(text) || utf8.RuneCount(text) > maxPlain {
		return false
	}
	for _, b := range text {
		if !s.alphabet[b] {
			return false
		}
	}
	return true
}

// proof is what is known of the texts of a slice after a configuration, by the state between bytes.
type proof struct {
	allowed [numUTF8]int8 // one more than the number of characters proved
	refused [numUTF8]int8 // the number of characters refuted; 0 is none
}

// allows reports whether every text of n characters of a slice is allowed, from between two bytes.
func (m *machine) allows(c *config, which int, alphabet *[256]bool, between uint8, n int8) bool {
	p := &c.proofs[which]
	switch {
	case c == dead || p.refused[between] != 0 && n >= p.refused[between]:
		return false
	case between == 0 && n == 0 || p.allowed[between] > n:
		return true
	}
	left := n
	if between == 0 {
		left-- // a character counts at its first byte
	}
	for _, e := range utf8Edges[between] {
		for b, last := int(e.lo), -1; b <= int(e.hi); b++ {
			class := int(m.program.class[b])
			if !alphabet[b] || class == last {
				continue
			}
			last = class
			if !m.allows(m.step(c, byte(b)), which, alphabet, e.to, left) {
				p.refused[between] = max(n, 1)
				return false
			}
		}
	}
	p.allowed[between] = n + 1
	return true
}
