package tokenizer

import (
	"errors"
	"slices"
	"strings"
)

// trie finds the keys that are prefixes of a text. Nodes are numbered; the children of all nodes are in one hash table,
// by node and byte.
type trie struct {
	children *pairTable // (node, byte) -> child, in the field id
	values   []int32    // by node; absent if no key ends there
}

type trieKey struct {
	text  string
	value int32
}

// maxTrieBytes bounds the number of nodes.
const maxTrieBytes = 1 << 26

// newTrie sorts keys, and numbers the nodes in their order. Of equal keys, the last counts.
func newTrie(keys []trieKey) (*trie, error) {
	slices.SortStableFunc(keys, func(x, y trieKey) int { return strings.Compare(x.text, y.text) })
	nodes, before := 1, ""
	for _, k := range keys {
		nodes += len(k.text) - commonPrefix(before, k.text)
		before = k.text
	}
	if nodes > maxTrieBytes {
		return nil, errors.New("the vocabulary has more text than is supported")
	}
	t := &trie{children: newPairTable(nodes), values: []int32{absent}}
	for _, k := range keys {
		node := int32(0)
		for i := range len(k.text) {
			next := t.children.get(node, int32(k.text[i]))
			if next.rank == noRank {
				next = merge{0, int32(len(t.values))}
				t.values = append(t.values, absent)
				t.children.put(node, int32(k.text[i]), next)
			}
			node = next.id
		}
		t.values[node] = k.value
	}
	return t, nil
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// prefixes calls yield for the keys that are prefixes of text, shortest first.
func (t *trie) prefixes(text string, yield func(length int, value int32)) {
	node := int32(0)
	for i := range len(text) {
		next := t.children.get(node, int32(text[i]))
		if next.rank == noRank {
			return
		}
		node = next.id
		if v := t.values[node]; v != absent {
			yield(i+1, v)
		}
	}
}

// longest returns the length and the value of the longest key that is a prefix of text; absent if there is none.
func (t *trie) longest(text string) (length int, value int32) {
	value = absent
	t.prefixes(text, func(n int, v int32) { length, value = n, v })
	return length, value
}
