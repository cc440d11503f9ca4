package tokenizer

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
