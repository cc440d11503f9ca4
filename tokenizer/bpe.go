package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// bpe is byte-pair encoding: a word starts as its characters, or its bytes, and the pair of neighbours with the lowest
// rank is joined until no pair has a rank.
type bpe struct {
	symbol   [256]int32       // in a byte-level model, the id of each byte; absent where there is none
	byBytes  bool             // symbols are bytes, else characters
	symbols  map[string]int32 // in other models, the ids of characters
	merges   *pairTable
	whole    *wordTable  // words that are tokens without any merge (ignore_merges); nil when that is off
	fallback *[256]int32 // ids of "<0x00>" to "<0xFF>", for characters without an id; absent where there is none
	unknown  int32       // for characters without an id; absent: they are dropped
	fuse     bool        // unknown characters in a row are one token

	prefix, suffix string  // of characters inside a word, and at its end
	parts          *parter // cuts words where nothing can be merged; nil where that is not known
}

// absent is an id that stands for none.
const absent = -1

// produces reports whether some text can become id.
func (m *bpe) produces(id int32) bool {
	if id == m.unknown {
		return true
	}
	if m.byBytes {
		for _, s := range m.symbol {
			if s == id {
				return true
			}
		}
	}
	for _, s := range m.symbols {
		if s == id {
			return true
		}
	}
	for _, s := range m.merges.slots {
		if s.key != 0 && s.id == id {
			return true
		}
	}
	if m.whole != nil {
		for _, w := range m.whole.slots {
			if w.used && w.id == id {
				return true
			}
		}
	}
	return m.fallback != nil && m.falls(id)
}

func (m *bpe) falls(id int32) bool {
	for _, s := range m.fallback {
		if s == id {
			return true
		}
	}
	return false
}

func (m *bpe) appendIDs(s *scratch, ids []int32, word string) []int32 {
	if id, ok := m.whole.get(word); ok {
		return append(ids, id)
	}
	for m.parts != nil {
		end := m.parts.next(word)
		if end == len(word) {
			break
		}
		ids = m.appendPart(s, ids, word[:end])
		word = word[end:]
	}
	return m.appendPart(s, ids, word)
}

// appendPart appends the ids of a word, or of a part of one that nothing is merged with.
func (m *bpe) appendPart(s *scratch, ids []int32, word string) []int32 {
	entry := s.entry(word)
	if entry.holds(word) {
		return append(ids, entry.ids[:entry.count]...)
	}
	start := len(ids)
	ids, ok := m.appendShort(ids, word)
	if !ok {
		s.tokens = m.merged(s, m.appendSymbols(s.tokens[:0], word))
		for _, t := range s.tokens {
			ids = append(ids, t.id)
		}
	}
	entry.put(word, ids[start:])
	return ids
}

func (m *bpe) appendTokens(s *scratch, tokens []token, word string) []token {
	if id, ok := m.whole.get(word); ok {
		return append(tokens, token{id, 0, int32(len(word))})
	}
	for at := 0; at < len(word); {
		end := len(word)
		if m.parts != nil {
			end = at + m.parts.next(word[at:])
		}
		s.tokens = m.merged(s, m.appendSymbols(s.tokens[:0], word[at:end]))
		for _, t := range s.tokens {
			tokens = append(tokens, token{t.id, t.start + int32(at), t.end + int32(at)})
		}
		at = end
	}
	return tokens
}

// longWord is where a heap becomes faster than looking at all pairs again after each join.
const longWord = 48

// appendShort merges a word by looking at all pairs for each join: O(n²), and fast for words. It does nothing when the
// word is long, or has a byte or a character without an id.
func (m *bpe) appendShort(ids []int32, word string) ([]int32, bool) {
	if len(word) > longWord {
		return ids, false
	}
	start := len(ids)
	for i := 0; i < len(word); {
		n := 1
		if !m.byBytes {
			_, n = utf8.DecodeRuneInString(word[i:])
		}
		id := m.symbolOf(word, i, n)
		if id == absent {
			return ids[:start], false
		}
		ids = append(ids, id)
		i += n
	}
	return ids[:start+m.join(ids[start:])], true
}

// join merges in place and returns how many are left.
func (m *bpe) join(ids []int32) int {
	var pairs [longWord]merge
	n := len(ids)
	best := 0
	pairs[0].rank = noRank
	for i := 1; i < n; i++ {
		pairs[i-1] = m.merges.get(ids[i-1], ids[i])
		if pairs[i-1].rank < pairs[best].rank {
			best = i - 1
		}
	}
	for n > 1 && pairs[best].rank != noRank {
		ids[best] = pairs[best].id
		copy(ids[best+1:n-1], ids[best+2:n])
		n--
		copy(pairs[best:n-1], pairs[best+1:n])
		if best < n-1 {
			pairs[best] = m.merges.get(ids[best], ids[best+1])
		}
		if best > 0 {
			pairs[best-1] = m.merges.get(ids[best-1], ids[best])
		}
		best = 0
		for i := 1; i < n-1; i++ {
			if pairs[i].rank < pairs[best].rank {
				best = i
			}
		}
	}
	return n
}

// appendSymbols appends what merging a word begins with. Places are counted from the lengths of these, so a character
// that is dropped moves those behind it, as in the reference.
func (m *bpe) appendSymbols(tokens []token, word string) []token {
	at := int32(0)
	add := func(id int32, n int) {
		tokens = append(tokens, token{id, at, at + int32(n)})
		at += int32(n)
	}
	pending := 0 // bytes of unknown characters so far
	flush := func() {
		if pending > 0 {
			add(m.unknown, pending)
			pending = 0
		}
	}
	for i := 0; i < len(word); {
		n := 1
		if !m.byBytes {
			_, n = utf8.DecodeRuneInString(word[i:])
		}
		id := m.symbolOf(word, i, n)
		switch {
		case id != absent:
			flush()
			add(id, n)
		case m.fallsBack(word[i : i+n]): // before what is pending: the reference does so
			for k := range n {
				add(m.fallback[word[i+k]], 1)
			}
		case m.unknown != absent:
			if !m.fuse {
				flush()
			}
			pending += n
		}
		i += n
	}
	flush()
	return tokens
}

func (m *bpe) symbolOf(word string, i, n int) int32 {
	if m.byBytes {
		return m.symbol[word[i]]
	}
	key := word[i : i+n]
	if i > 0 && m.prefix != "" {
		key = m.prefix + key
	}
	if i+n == len(word) && m.suffix != "" {
		key += m.suffix
	}
	if id, ok := m.symbols[key]; ok {
		return id
	}
	return absent
}

// fallsBack reports whether all bytes of a character have ids.
func (m *bpe) fallsBack(char string) bool {
	if m.fallback == nil {
		return false
	}
	for i := range len(char) {
		if m.fallback[char[i]] == absent {
			return false
		}
	}
	return true
}

// merged merges tokens in place and returns what is left. It keeps the pairs in a heap: O(n log n).
func (m *bpe) merged(s *scratch, tokens []token) []token {
	s.link(len(tokens))
	for i := range tokens {
		s.offer(m, tokens, int32(i))
	}
	for len(s.heap) > 0 {
		c := s.heap.pop()
		if tokens[c.pos].id == absent || s.next[c.pos] < 0 {
			continue
		}
		gone := s.next[c.pos]
		if now := m.merges.get(tokens[c.pos].id, tokens[gone].id); now != c.merge {
			continue // the pair has changed since it was put on the heap
		}
		tokens[c.pos].id, tokens[c.pos].end = c.id, tokens[gone].end
		tokens[gone].id = absent
		s.unlink(c.pos, gone)
		if before := s.prev[c.pos]; before >= 0 {
			s.offer(m, tokens, before)
		}
		s.offer(m, tokens, c.pos)
	}
	out := tokens[:0]
	for _, t := range tokens {
		if t.id != absent {
			out = append(out, t)
		}
	}
	return out
}

// decoded is what a token of a byte-level model becomes: the bytes that it spells, or itself when it is not in the
// alphabet.
func decoded(token string) string {
	if text, ok := unspell(token); ok {
		return text
	}
	return strings.Clone(token)
}
