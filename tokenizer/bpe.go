package tokenizer

import "math"

// bpe is byte-pair encoding over bytes: a word starts as its bytes, and the pair of neighbours with the lowest rank is
// joined until no pair has a rank.
type bpe struct {
	symbol [256]int32
	merges map[uint64]merge // by pairKey
	whole  map[string]int32 // words that are tokens without any merge (ignore_merges); nil when that is off
	cache  *wordCache
}

type merge struct {
	rank uint32
	id   int32 // of the joined token
}

const noRank = math.MaxUint32

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

func (m *bpe) pair(left, right int32) merge {
	if j, ok := m.merges[pairKey(left, right)]; ok {
		return j
	}
	return merge{rank: noRank}
}

// produces reports whether some text can become id.
func (m *bpe) produces(id int32) bool {
	for _, s := range m.symbol {
		if s == id {
			return true
		}
	}
	for _, j := range m.merges {
		if j.id == id {
			return true
		}
	}
	for _, w := range m.whole {
		if w == id {
			return true
		}
	}
	return false
}

// appendWord appends the ids of one word.
func (m *bpe) appendWord(ids []int32, word string) []int32 {
	if id, ok := m.whole[word]; ok {
		return append(ids, id)
	}
	if cached, ok := m.cache.get(word); ok {
		return append(ids, cached...)
	}
	start := len(ids)
	for i := range len(word) {
		ids = append(ids, m.symbol[word[i]])
	}
	joined := m.join(ids[start:])
	m.cache.put(word, joined)
	return ids[:start+len(joined)]
}

// longWord is where the heap becomes faster than looking at all pairs again after each join.
const longWord = 48

// join merges in place and returns what is left.
func (m *bpe) join(ids []int32) []int32 {
	if len(ids) < longWord {
		return m.joinShort(ids)
	}
	return m.joinLong(ids)
}

// joinShort looks at all pairs for each join: O(n²), and fast for words.
func (m *bpe) joinShort(ids []int32) []int32 {
	var buf [longWord]merge
	pairs := buf[:0]
	for i := 1; i < len(ids); i++ {
		pairs = append(pairs, m.pair(ids[i-1], ids[i]))
	}
	for {
		best := -1
		for i := range pairs {
			if pairs[i].rank != noRank && (best < 0 || pairs[i].rank < pairs[best].rank) {
				best = i
			}
		}
		if best < 0 {
			return ids
		}
		ids[best] = pairs[best].id
		ids = append(ids[:best+1], ids[best+2:]...)
		pairs = append(pairs[:best], pairs[best+1:]...)
		if best < len(pairs) {
			pairs[best] = m.pair(ids[best], ids[best+1])
		}
		if best > 0 {
			pairs[best-1] = m.pair(ids[best-1], ids[best])
		}
	}
}
