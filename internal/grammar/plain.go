package grammar

import "unicode/utf8"

// Most tokens are plain: whole characters that a JSON string holds as they are. In most states of a string all of them
// are allowed, which is proved once for a state by following every plain text of maxPlain characters through the few
// configurations that they lead to. Then only the other tokens are checked one by one. The idea is that of the slices
// of llguidance (https://github.com/guidance-ai/llguidance/blob/main/docs/optimizations.md).

// maxPlain is the most characters of a plain token.
const maxPlain = 16

// numUTF8 is the number of states between the bytes of valid UTF-8; 0 is between characters.
const numUTF8 = 8

// utf8Edge leads from one state between bytes to another (The Unicode Standard, table 3-7).
type utf8Edge struct {
	lo, hi byte
	to     uint8
}

// utf8Edges are the bytes of plain characters.
var utf8Edges = [numUTF8][]utf8Edge{
	0: {
		{0x20, 0x21, 0}, {0x23, 0x5B, 0}, {0x5D, 0x7F, 0}, {0xC2, 0xDF, 1}, {0xE0, 0xE0, 4}, {0xE1, 0xEC, 2},
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

// splitPlain sorts tokens into plain and others.
func (v *Vocabulary) splitPlain(ids []int32) {
	v.plain = make([]uint32, v.MaskWords())
	var others []int32
	for _, id := range ids {
		if v.isPlain(v.tokens[id]) {
			setBit(v.plain, id)
		} else {
			others = append(others, id)
		}
	}
	v.rest = newTrie(v.tokens, others)
}

// isPlain reports whether a token consists of at most maxPlain plain characters whose bytes are writable.
func (v *Vocabulary) isPlain(text []byte) bool {
	if !utf8.Valid(text) || utf8.RuneCount(text) > maxPlain {
		return false
	}
	for _, b := range text {
		if b < 0x20 || b == '"' || b == '\\' || !v.writable[b] {
			return false
		}
	}
	return true
}

// allowsPlain reports whether every plain text of n further characters is allowed, from between two bytes.
func (m *machine) allowsPlain(c *config, between uint8, n int8, writable *[256]bool) bool {
	switch {
	case c == dead || c.refused[between] != 0 && n >= c.refused[between]:
		return false
	case between == 0 && n == 0 || c.plain[between] > n:
		return true
	}
	for _, e := range utf8Edges[between] {
		if !m.allowsEdge(c, between, e, n, writable) {
			c.refused[between] = max(n, 1)
			return false
		}
	}
	c.plain[between] = n + 1
	return true
}

// allowsEdge is allowsPlain for the texts that begin with the bytes of one edge. A character counts at its first byte.
func (m *machine) allowsEdge(c *config, between uint8, e utf8Edge, n int8, writable *[256]bool) bool {
	if between == 0 {
		n--
	}
	for b, last := int(e.lo), -1; b <= int(e.hi); b++ {
		class := int(m.program.class[b])
		if !writable[b] || class == last {
			continue
		}
		last = class
		if !m.allowsPlain(m.step(c, byte(b)), e.to, n, writable) {
			return false
		}
	}
	return true
}
