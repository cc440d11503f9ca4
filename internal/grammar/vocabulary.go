package grammar

import (
	"bytes"
	"cmp"
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
	var ids []int32 // the tokens that grammars may spell texts with
	for i, text := range tokens {
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
	slices.SortFunc(ids, func(a, b int32) int {
		return cmp.Or(bytes.Compare(tokens[a], tokens[b]), cmp.Compare(a, b))
	})
	v.all = newTrie(tokens, ids)
	v.setSlices(ids)
	return v, nil
}

// Size returns the number of token ids.
func (v *Vocabulary) Size() int { return len(v.tokens) }

// MaskWords returns the length of a mask: one bit for each id, 32 in a word.
func (v *Vocabulary) MaskWords() int { return (len(v.tokens) + 31) / 32 }

// trie holds tokens by their bytes. Its nodes are in preorder: after a node come those below it, up to skip[node].
type trie struct {
	label []byte   // byte that leads to the node
	depth []uint16 // length of the text of the node, from 1
	skip  []int32
	first []int32 // ids[first[node]:first[node+1]] are the tokens whose text is that of the node
	ids   []int32
}

// newTrie makes the trie of some tokens of a vocabulary, which are in the order of their texts.
func newTrie(tokens [][]byte, ids []int32) *trie {
	t := &trie{}
	var path []int32 // nodes of the text of the previous token
	var previous []byte
	for _, id := range ids {
		text := tokens[id]
		shared := 0
		for shared < len(previous) && shared < len(text) && previous[shared] == text[shared] {
			shared++
		}
		t.close(path[shared:])
		path = path[:shared]
		for i := shared; i < len(text); i++ {
			path = append(path, int32(len(t.label)))
			t.label = append(t.label, text[i])
			t.depth = append(t.depth, uint16(i+1))
			t.skip = append(t.skip, 0)
			t.first = append(t.first, int32(len(t.ids)))
		}
		t.ids = append(t.ids, id)
		previous = text
	}
	t.close(path)
	t.first = append(t.first, int32(len(t.ids)))
	return t
}

// close ends the subtrees of nodes.
func (t *trie) close(nodes []int32) {
	for _, node := range nodes {
		t.skip[node] = int32(len(t.label))
	}
}

// below returns the tokens below a node, without its own.
func (t *trie) below(node int32) []int32 {
	return t.ids[t.first[node+1]:t.first[t.skip[node]]]
}
