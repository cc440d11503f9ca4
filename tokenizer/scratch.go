package tokenizer

import (
	"hash/maphash"
	"sync"
)

// scratch is memory that encoding reuses: a cache of words, and the working memory of merging. It belongs to one
// goroutine at a time.
type scratch struct {
	cache      []cacheEntry // by hash
	seed       maphash.Seed
	tokens     []token
	prev, next []int32 // a linked list over tokens; -1 at its ends
	heap       candidates
	path       []pathNode
}

// cacheEntry is a short word and its ids. Entries have a fixed size, so the cache does too, and storing one allocates
// nothing.
type cacheEntry struct {
	length, count uint8
	word          [maxCachedBytes]byte
	ids           [maxCachedIDs]int32
}

// Bounds of the cache: 4096 words, 256 KiB for each goroutine that encodes.
const (
	cacheEntries   = 1 << 12
	maxCachedBytes = 30
	maxCachedIDs   = 8
)

// pool lends scratch memory.
type pool struct{ sync.Pool }

func (p *pool) get() *scratch {
	if s, ok := p.Get().(*scratch); ok {
		return s
	}
	return &scratch{cache: make([]cacheEntry, cacheEntries), seed: maphash.MakeSeed()}
}

// entry returns where a word is, or would be; nil when it is too long, or there is no cache.
func (s *scratch) entry(word string) *cacheEntry {
	if len(word) > maxCachedBytes || s.cache == nil {
		return nil
	}
	return &s.cache[maphash.String(s.seed, word)%cacheEntries]
}

func (e *cacheEntry) holds(word string) bool {
	return e != nil && string(e.word[:e.length]) == word
}

func (e *cacheEntry) put(word string, ids []int32) {
	if e == nil || len(ids) > maxCachedIDs {
		return
	}
	e.length, e.count = uint8(copy(e.word[:], word)), uint8(copy(e.ids[:], ids))
}

// link makes a list of n tokens, and an empty heap.
func (s *scratch) link(n int) {
	s.prev, s.next, s.heap = s.prev[:0], s.next[:0], s.heap[:0]
	for i := range n {
		s.prev, s.next = append(s.prev, int32(i-1)), append(s.next, int32(i+1))
	}
	if n > 0 {
		s.next[n-1] = -1
	}
}

// unlink takes the token behind pos out of the list.
func (s *scratch) unlink(pos, gone int32) {
	s.next[pos] = s.next[gone]
	if after := s.next[gone]; after >= 0 {
		s.prev[after] = pos
	}
}

// offer puts the pair that begins at pos on the heap, when it can be merged.
func (s *scratch) offer(m *bpe, tokens []token, pos int32) {
	next := s.next[pos]
	if next < 0 {
		return
	}
	if j := m.merges.get(tokens[pos].id, tokens[next].id); j.rank != noRank {
		s.heap.push(candidate{j, pos})
	}
}

// candidate is a pair that may be joined: the token at pos and the one that follows it.
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
