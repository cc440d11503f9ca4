package tokenizer

import "container/heap"

// candidate is a pair that may be joined: the symbol at pos and the one that follows it.
type candidate struct {
	merge
	pos int32
}

// candidates is a heap: the lowest rank first, and of equal ranks the leftmost.
type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	if c[i].rank != c[j].rank {
		return c[i].rank < c[j].rank
	}
	return c[i].pos < c[j].pos
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// symbols is a linked list over a word, so that a join costs the same wherever it is.
type symbols struct {
	ids        []int32 // joinedAway where a symbol became part of the one before
	prev, next []int32
}

const joinedAway = -1

// joinLong keeps the pairs in a heap: O(n log n), for the long runs that a pre-tokenizer may leave whole.
func (m *bpe) joinLong(ids []int32) []int32 {
	s := symbols{ids, make([]int32, len(ids)), make([]int32, len(ids))}
	var queue candidates
	push := func(pos int32) {
		if pos < 0 || int(s.next[pos]) >= len(ids) {
			return
		}
		if j := m.pair(ids[pos], ids[s.next[pos]]); j.rank != noRank {
			heap.Push(&queue, candidate{j, pos})
		}
	}
	for i := range ids {
		s.prev[i], s.next[i] = int32(i-1), int32(i+1)
		push(int32(i))
	}
	for len(queue) > 0 {
		c := heap.Pop(&queue).(candidate)
		if s.stale(m, c) {
			continue
		}
		s.join(c)
		push(s.prev[c.pos])
		push(c.pos)
	}
	out := ids[:0]
	for _, id := range ids {
		if id != joinedAway {
			out = append(out, id)
		}
	}
	return out
}

// stale reports whether the pair has changed since it was put on the heap.
func (s *symbols) stale(m *bpe, c candidate) bool {
	next := s.next[c.pos]
	return s.ids[c.pos] == joinedAway || int(next) >= len(s.ids) || m.pair(s.ids[c.pos], s.ids[next]) != c.merge
}

func (s *symbols) join(c candidate) {
	gone := s.next[c.pos]
	s.ids[c.pos], s.ids[gone] = c.id, joinedAway
	s.next[c.pos] = s.next[gone]
	if after := s.next[gone]; int(after) < len(s.ids) {
		s.prev[after] = c.pos
	}
}
