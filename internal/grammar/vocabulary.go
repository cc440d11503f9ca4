package grammar

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Vocabulary is the tokens among which a model chooses. It is read only and may be shared; grammars compiled for the
// same Vocabulary share its tables.
type Vocabulary struct {
	tokens   [][]byte
	end      []int32
	isEnd    map[int32]bool
	writable [256]bool // bytes that are tokens of their own
	all      *trie     // tokens with text
	slices   [numSlices]slice
}

// NewVocabulary takes the bytes of each token id and the ids that end a sequence. Control tokens have nil. A token may
// hold a part of a character. Bytes that are not tokens of their own are written by no grammar, because a text could
// otherwise begin that no further token continues; byte-level vocabularies have all that UTF-8 uses.
func NewVocabulary(tokens [][]byte, end []int32) (*Vocabulary, error) {
	if len(end) == 0 {
		return nil, errors.New("grammar: a vocabulary needs an end-of-sequence id, or no text could end")
	}
	v := &Vocabulary{tokens: tokens, isEnd: map[int32]bool{}}
	for _, id := range end {
		if id < 0 || int(id) >= len(tokens) {
			return nil, fmt.Errorf("grammar: end-of-sequence id %d is outside the vocabulary of %d", id, len(tokens))
		}
		v.isEnd[id] = true
	}
	v.end = slices.Sorted(slices.Values(end))
	ids, err := v.withText()
	if err != nil {
		return nil, err
	}
	sortByText(tokens, ids)
	v.all = newTrie(tokens, ids)
	v.setSlices(ids)
	return v, nil
}

// withText returns the tokens that grammars may spell texts with, and notes the single bytes.
func (v *Vocabulary) withText() ([]int32, error) {
	var ids []int32
	for i, text := range v.tokens {
		if len(text) > math.MaxUint16 {
			return nil, fmt.Errorf("grammar: token %d has %d bytes, more than %d", i, len(text), math.MaxUint16)
		}
		if len(text) == 0 || v.isEnd[int32(i)] {
			continue
		}
		ids = append(ids, int32(i))
		if len(text) == 1 {
			v.writable[text[0]] = true
		}
	}
	return ids, nil
}

// Size returns the number of token ids.
func (v *Vocabulary) Size() int { return len(v.tokens) }

// MaskWords returns the length of a mask: one bit for each id, 32 in a word.
func (v *Vocabulary) MaskWords() int { return (len(v.tokens) + 31) / 32 }

// checkControl refuses ids that cannot be an element of a grammar.
func (v *Vocabulary) checkControl(id int32) error {
	switch {
	case id < 0 || int(id) >= len(v.tokens):
		return fmt.Errorf("grammar: token %d is outside the vocabulary of %d", id, len(v.tokens))
	case v.isEnd[id]:
		return fmt.Errorf("grammar: token %d ends the sequence and cannot be within a grammar", id)
	}
	return nil
}
