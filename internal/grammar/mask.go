package grammar

import (
	"math/bits"
	"slices"
	"unicode"
	"unicode/utf8"
)

// The mask of a configuration is the union of those of its items. What an item allows is mostly independent of the
// frame it is in: tokens that stay within the rule and what it calls, or end exactly with it. That part is computed
// once for each state. The others, which go on after the end of the rule, are few; they are looked up in what comes
// after the frame. XGrammar (Dong et al. 2024, https://arxiv.org/abs/2411.15100, section 3.1) calls them
// context-independent and context-dependent tokens.

// mask is a set of token ids.
type mask struct {
	ids  []int32  // the ids, in no order, if they are few
	bits []uint32 // one bit for each id otherwise
}

// static is what a state allows whatever comes after its frame.
type static struct {
	mask
	trie    *trie   // the trie of escapes
	escapes []int32 // nodes at which the frame may end, with tokens below them that the state alone does not allow
}

func setBit(bits []uint32, id int32) { bits[id>>5] |= 1 << (id & 31) }

func hasBit(bits []uint32, id int32) bool { return bits[id>>5]&(1<<(id&31)) != 0 }

// addTo adds the ids to a bitset.
func (s *mask) addTo(dst []uint32) {
	for i, word := range s.bits {
		dst[i] |= word
	}
	for _, id := range s.ids {
		setBit(dst, id)
	}
}

// compress returns the set of a bitset, which it copies.
func compress(set []uint32) mask {
	count := 0
	for _, word := range set {
		count += bits.OnesCount32(word)
	}
	if count > len(set) {
		return mask{bits: append([]uint32(nil), set...)}
	}
	ids := make([]int32, 0, count)
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			ids = append(ids, int32(32*i+bits.TrailingZeros32(word)))
		}
	}
	return mask{ids: ids}
}

// bytes returns about how much memory the set takes.
func (s *mask) bytes() int { return 4 * (len(s.bits) + len(s.ids)) }

// maskOf returns the mask of a configuration.
func (c *Compiled) maskOf(at *config) *mask {
	if at.mask != nil {
		return at.mask
	}
	dst := make([]uint32, c.vocabulary.MaskWords())
	for _, it := range at.items {
		s := c.staticOf(it.state)
		s.addTo(dst)
		if len(s.escapes) == 0 {
			continue
		}
		after := c.machine.after(it.frame)
		for _, node := range s.escapes {
			c.walk(s.trie, node+1, s.trie.skip[node], after, dst)
		}
	}
	if at.end {
		for _, id := range c.vocabulary.end {
			setBit(dst, id)
		}
	}
	m := compress(dst)
	at.mask = &m
	c.kept += m.bytes()
	return at.mask
}

// staticOf returns what a state allows whatever comes after its frame.
func (c *Compiled) staticOf(state int32) *static {
	if s := c.statics[state]; s != nil {
		return s
	}
	dst := make([]uint32, c.vocabulary.MaskWords())
	for _, e := range c.machine.program.states[state].tokens {
		setBit(dst, e.id)
	}
	s := &static{trie: c.vocabulary.all}
	begin := c.machine.within(state)
	for i, slice := range c.vocabulary.slices {
		if c.machine.allows(begin, i, slice.alphabet, 0, maxPlain) {
			for i, word := range slice.tokens {
				dst[i] |= word
			}
			s.trie = slice.rest
			break
		}
	}
	for _, node := range c.walk(s.trie, 0, int32(len(s.trie.label)), begin, dst) {
		if slices.ContainsFunc(s.trie.below(node), func(id int32) bool { return !hasBit(dst, id) }) {
			s.escapes = append(s.escapes, node)
		}
	}
	s.mask = compress(dst)
	c.statics[state] = s
	c.kept += s.bytes() + 4*len(s.escapes)
	return s
}

// walk adds the tokens of the nodes from lo up to hi, siblings and what is below them, that are allowed after a
// configuration. It returns the nodes with others below them at which an open frame may end.
func (c *Compiled) walk(t *trie, lo, hi int32, begin *config, dst []uint32) []int32 {
	if lo == hi || begin == dead {
		return nil
	}
	base := int(t.depth[lo]) - 1
	path := append(c.path[:0], begin) // configurations before each byte of the text
	var escapes []int32
	for node := lo; node < hi; {
		at := int(t.depth[node]) - base
		next := c.machine.step(path[at-1], t.label[node])
		if next == dead {
			node = t.skip[node]
			continue
		}
		path = append(path[:at], next)
		for _, id := range t.ids[t.first[node]:t.first[node+1]] {
			setBit(dst, id)
		}
		if next.escaped && t.skip[node] > node+1 {
			escapes = append(escapes, node)
		}
		node++
	}
	c.path = path
	return escapes
}

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
	return utf8.Valid(text) && utf8.RuneCount(text) <= maxPlain &&
		!slices.ContainsFunc(text, func(b byte) bool { return !s.alphabet[b] })
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
