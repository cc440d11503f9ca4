package tokenizer

import "slices"

// bpe is byte-pair encoding: a word begins as its characters or bytes, the symbols, and the adjacent pair with the
// lowest rank is merged until no pair has a rank.
type bpe struct {
	symbol   [256]int32       // of a byte-level model: the id of each byte, or absent
	byBytes  bool             // symbols are bytes, not characters
	symbols  map[string]int32 // of other models: the ids of characters
	merges   *pairTable
	whole    *wordTable  // the words that are tokens without merges (ignore_merges); nil if that is off
	fallback *[256]int32 // the ids of "<0x00>" to "<0xFF>", or absent, for characters without an id
	unknown  int32       // for characters without an id; if absent, they are dropped
	fuse     bool        // consecutive unknown characters are one token

	prefix, suffix string        // of the symbols inside a word, and at its end
	splitter       *wordSplitter // cuts words where no merge is possible; nil if that is not known
}

// absent means that there is no id.
const absent = -1

// produces reports whether some text can become id.
func (m *bpe) produces(id int32) bool {
	for _, s := range m.symbols {
		if s == id {
			return true
		}
	}
	if m.whole != nil && slices.ContainsFunc(m.whole.slots, func(s wordSlot) bool { return s.used && s.id == id }) {
		return true
	}
	return id == m.unknown || m.byBytes && slices.Contains(m.symbol[:], id) ||
		slices.ContainsFunc(m.merges.slots, func(s pairSlot) bool { return s.key != 0 && s.id == id }) ||
		m.fallback != nil && slices.Contains(m.fallback[:], id)
}

func (m *bpe) appendIDs(s *scratch, ids []int32, word string) []int32 {
	if id, ok := m.whole.get(word); ok {
		return append(ids, id)
	}
	for m.splitter != nil {
		end := m.splitter.next(word)
		if end == len(word) {
			break
		}
		ids = m.appendPart(s, ids, word[:end])
		word = word[end:]
	}
	return m.appendPart(s, ids, word)
}

// appendPart appends the ids of a word, or of a part of one that does not merge with the rest.
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
		if m.splitter != nil {
			end = at + m.splitter.next(word[at:])
		}
		s.tokens = m.merged(s, m.appendSymbols(s.tokens[:0], word[at:end]))
		for _, t := range s.tokens {
			tokens = append(tokens, token{t.id, t.start + int32(at), t.end + int32(at)})
		}
		at = end
	}
	return tokens
}
