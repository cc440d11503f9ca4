package tokenizer

// link resets the list to n tokens, and the heap to empty.
func (s *scratch) link(n int) {
	s.prev, s.next, s.heap = s.prev[:0], s.next[:0], s.heap[:0]
	for i := range n {
		s.prev, s.next = append(s.prev, int32(i-1)), append(s.next, int32(i+1))
	}
	if n > 0 {
		s.next[n-1] = -1
	}
}

// unlink removes gone, the token after pos, from the list.
func (s *scratch) unlink(pos, gone int32) {
	s.next[pos] = s.next[gone]
	if after := s.next[gone]; after >= 0 {
		s.prev[after] = pos
	}
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
