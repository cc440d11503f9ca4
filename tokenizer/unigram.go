package tokenizer

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// unigram segments a word into the pieces with the highest sum of scores (log probabilities), by the Viterbi algorithm.
// Consecutive characters without a piece become one unknown token, or their bytes.
type unigram struct {
	trie            *trie
	scores          []float64
	byText          map[string]int32
	unknown         int32       // if absent, characters without a piece are dropped
	fallback        *[256]int32 // nil if there is no byte fallback
	floor           float64     // the score of an unknown character
	singlePrecision bool        // scores are added in float32, as SentencePiece does
	longest         int         // length in bytes of the longest piece or character
}

// unknownPenalty is by how much the score of an unknown character is below that of the lowest piece.
const unknownPenalty = 10

// maxSum is the sum beyond which SentencePiece subtracts it from all sums still in use, to keep precision.
const maxSum = 100_000

// pathNode is the best segmentation up to an offset of the word.
type pathNode struct {
	score float64
	start int32 // where its last piece begins; absent if there is no segmentation
	id    int32
}

// vocabPiece is a piece with its score. Its id is its index.
type vocabPiece struct {
	text  string
	score float64
}

// newUnigram builds a model. Text never becomes a hidden piece.
func newUnigram(pieces []vocabPiece, unknown int32, byteFallback bool, hidden func(int32) bool) (*unigram, error) {
	if unknown != absent && int(unknown) >= len(pieces) || unknown < absent {
		return nil, fmt.Errorf("unk_id %d is not in the vocabulary", unknown)
	}
	m := &unigram{byText: make(map[string]int32, len(pieces)), unknown: unknown, scores: make([]float64, len(pieces))}
	lowest := math.Inf(1)
	var keys []trieKey
	m.longest = utf8.UTFMax
	for id, p := range pieces {
		if math.IsNaN(p.score) || math.IsInf(p.score, 0) {
			return nil, fmt.Errorf("the score of %q is not a number", p.text)
		}
		m.byText[p.text], m.scores[id] = int32(id), p.score
		lowest, m.longest = min(lowest, p.score), max(m.longest, len(p.text))
	}
	for id, p := range pieces {
		if p.text != "" && !hidden(int32(id)) {
			keys = append(keys, trieKey{p.text, m.byText[p.text]})
		}
	}
	m.floor = lowest - unknownPenalty
	var err error
	if m.trie, err = newTrie(keys); err != nil {
		return nil, err
	}
	if byteFallback {
		m.fallback = fallbackIDs(m.byText)
	}
	return m, nil
}

func (m *unigram) appendIDs(s *scratch, ids []int32, word string) []int32 {
	entry := s.entry(word)
	if entry.holds(word) {
		return append(ids, entry.ids[:entry.count]...)
	}
	start := len(ids)
	s.tokens = m.segment(s, s.tokens[:0], word)
	for _, t := range s.tokens {
		ids = append(ids, t.id)
	}
	entry.put(word, ids[start:])
	return ids
}

func (m *unigram) appendTokens(s *scratch, tokens []token, word string) []token {
	return m.segment(s, tokens, word)
}

// segment appends the pieces of a word.
func (m *unigram) segment(s *scratch, tokens []token, word string) []token {
	m.search(s, word)
	var found []token // from the end of the word to its beginning
	for end := int32(len(word)); end > 0; {
		n := s.path[end]
		last := len(found) - 1
		if n.id == m.unknown && last >= 0 && found[last].id == m.unknown {
			found[last].start = n.start // consecutive unknown characters are one token
		} else {
			found = append(found, token{n.id, n.start, end})
		}
		end = n.start
	}
	for _, t := range slices.Backward(found) {
		tokens = m.appendPiece(tokens, t, word[t.start:t.end])
	}
	return tokens
}

// appendPiece appends a piece, or the tokens of unknown text; byte tokens span all of it.
func (m *unigram) appendPiece(tokens []token, t token, text string) []token {
	if t.id != m.unknown {
		return append(tokens, t)
	}
	if id, ok := m.byText[text]; ok {
		return append(tokens, token{id, t.start, t.end})
	}
	if covers(m.fallback, text) {
		for i := range len(text) {
			tokens = append(tokens, token{m.fallback[text[i]], t.start, t.end})
		}
		return tokens
	}
	if m.unknown == absent {
		return tokens
	}
	return append(tokens, t)
}

// search fills s.path with the best segmentation up to each offset of the word.
func (m *unigram) search(s *scratch, word string) {
	s.path = append(s.path[:0], pathNode{})
	for range len(word) {
		s.path = append(s.path, pathNode{start: absent})
	}
	for at := 0; at < len(word); {
		_, n := utf8.DecodeRuneInString(word[at:])
		if m.singlePrecision {
			rebase(s.path[at : min(at+m.longest, len(word))+1])
		}
		so, single := s.path[at].score, false
		reach := func(end int, score float64, id int32) {
			if score += so; m.singlePrecision {
				score = float64(float32(score))
			}
			if to := &s.path[end]; to.start == absent || score > to.score {
				*to = pathNode{score, int32(at), id}
			}
		}
		m.trie.prefixes(word[at:], func(length int, id int32) {
			reach(at+length, m.scores[id], id)
			single = single || length == n
		})
		if !single {
			reach(at+n, m.floor, m.unknown)
		}
		at += n
	}
}

// rebase subtracts the first sum of path from all sums, if it is large.
func rebase(path []pathNode) {
	offset := path[0].score
	if math.Abs(offset) <= maxSum {
		return
	}
	for i := range path {
		path[i].score = float64(float32(path[i].score - offset))
	}
}

func (m *unigram) produces(id int32) bool {
	return id == m.unknown || id != absent && slices.Contains(m.trie.values, id) ||
		m.fallback != nil && slices.Contains(m.fallback[:], id)
}
