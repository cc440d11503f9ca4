package tokenizer

import (
	"hash/maphash"
	"sync"
)

// scratch is memory that encoding reuses: a cache of words, and the working memory of models. One goroutine uses it at
// a time.
type scratch struct {
	cache      []cacheEntry // by the hash of the word
	seed       maphash.Seed
	tokens     []token
	prev, next []int32 // a linked list over tokens; -1 at its ends
	heap       candidates
	path       []pathNode
}

// cacheEntry is a short word and its ids. Entries have a fixed size, so that the cache has too, and storing one does
// not allocate.
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

// pool provides scratch memory.
type pool struct{ sync.Pool }

func (p *pool) get() *scratch {
	if s, ok := p.Get().(*scratch); ok {
		return s
	}
	return &scratch{cache: make([]cacheEntry, cacheEntries), seed: maphash.MakeSeed()}
}

// entry returns the entry for a word; nil if the word is too long, or there is no cache.
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

// wordModel encodes words. It does not change after it is built.
type wordModel interface {
	// appendIDs appends the ids of a word.
	appendIDs(s *scratch, ids []int32, word string) []int32
	// appendTokens appends the ids of a word, and which of its bytes each id covers.
	appendTokens(s *scratch, tokens []token, word string) []token
	// produces reports whether some text may become id.
	produces(id int32) bool
}

// token is an id and the bytes of a word that it covers.
type token struct{ id, start, end int32 }
