package tokenizer

import (
	"hash/maphash"
	"strings"
	"sync"
)

// wordCache remembers the ids of words. Text repeats its words, and merging is most of the work.
type wordCache struct {
	seed   maphash.Seed
	shards [16]cacheShard
}

type cacheShard struct {
	mu    sync.RWMutex
	words map[string][]int32
}

// Bounds of the cache: 16 shards of 4096 words of at most 64 bytes, a few MB when it is full.
const (
	maxShardWords  = 4096
	maxCachedBytes = 64
)

func newWordCache() *wordCache { return &wordCache{seed: maphash.MakeSeed()} }

func (c *wordCache) shard(word string) *cacheShard {
	return &c.shards[maphash.String(c.seed, word)%uint64(len(c.shards))]
}

// get returns ids that must not be changed.
func (c *wordCache) get(word string) ([]int32, bool) {
	if len(word) > maxCachedBytes {
		return nil, false
	}
	s := c.shard(word)
	s.mu.RLock()
	defer s.mu.RUnlock()
	ids, ok := s.words[word]
	return ids, ok
}

// put stores a copy. A full shard starts over: words that are common are soon back.
func (c *wordCache) put(word string, ids []int32) {
	if len(word) > maxCachedBytes {
		return
	}
	s := c.shard(word)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.words == nil || len(s.words) >= maxShardWords {
		s.words = make(map[string][]int32)
	}
	s.words[strings.Clone(word)] = append([]int32(nil), ids...)
}
