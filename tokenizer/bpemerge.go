package tokenizer

import (
	"slices"
	"unicode/utf8"
)

// longWord is the length from which a heap is faster than scanning all pairs after each merge.
const longWord = 48

// appendShort encodes a word by scanning all pairs for each merge: O(n²), but fast for words. It does nothing if the
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
	return ids[:start+m.mergeShort(ids[start:])], true
}

// mergeShort merges in place, and returns how many ids remain.
func (m *bpe) mergeShort(ids []int32) int {
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

// appendSymbols appends the symbols of a word. Their offsets are the sums of their lengths, so a dropped character
// shifts those after it, as in the reference.
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
		case covers(m.fallback, word[i:i+n]): // before pending unknown characters, as in the reference
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

// merged merges tokens in place, and returns those that remain. It keeps the pairs in a heap: O(n log n).
func (m *bpe) merged(s *scratch, tokens []token) []token {
	n := len(tokens) // which become a linked list
	s.prev, s.next, s.heap = s.prev[:0], s.next[:0], s.heap[:0]
	for i := range n {
		s.prev, s.next = append(s.prev, int32(i-1)), append(s.next, int32(i+1))
	}
	if n > 0 {
		s.next[n-1] = -1
	}
	for i := range tokens {
		s.pushPair(m, tokens, int32(i))
	}
	for len(s.heap) > 0 {
		c := s.heap.pop()
		if tokens[c.pos].id == absent || s.next[c.pos] < 0 {
			continue
		}
		gone := s.next[c.pos]
		if now := m.merges.get(tokens[c.pos].id, tokens[gone].id); now != c.merge {
			continue // one of the two was merged since the pair was pushed
		}
		tokens[c.pos].id, tokens[c.pos].end = c.id, tokens[gone].end
		tokens[gone].id = absent
		s.next[c.pos] = s.next[gone]
		if after := s.next[gone]; after >= 0 {
			s.prev[after] = c.pos
		}
		if before := s.prev[c.pos]; before >= 0 {
			s.pushPair(m, tokens, before)
		}
		s.pushPair(m, tokens, c.pos)
	}
	return slices.DeleteFunc(tokens, func(t token) bool { return t.id == absent })
}

// pushPair pushes the pair that begins at pos onto the heap, if it can be merged.
func (s *scratch) pushPair(m *bpe, tokens []token, pos int32) {
	next := s.next[pos]
	if next < 0 {
		return
	}
	if j := m.merges.get(tokens[pos].id, tokens[next].id); j.rank != noRank {
		s.heap.push(candidate{j, pos})
	}
}

// candidate is a pair that may be merged: the token at pos and the next one.
type candidate struct {
	merge
	pos int32
}

// candidates is a binary heap: the lowest rank first, and of equal ranks the leftmost.
type candidates []candidate

func (c candidate) before(o candidate) bool {
	return c.rank < o.rank || c.rank == o.rank && c.pos < o.pos
}

func (h *candidates) push(c candidate) {
	*h = append(*h, c)
	s := *h
	i := len(s) - 1
	for i > 0 && c.before(s[(i-1)/2]) {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = c
}

func (h *candidates) pop() candidate {
	s := *h
	top, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1].before(s[child]) {
			child++
		}
		if !s[child].before(last) {
			break
		}
		s[i] = s[child]
		i = child
	}
	if len(s) > 0 {
		s[i] = last
	}
	return top
}
