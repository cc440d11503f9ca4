package grammar

import (
	"bytes"
	"cmp"
	"slices"
)

// trie holds tokens by their bytes. Its nodes are in preorder: after a node come those below it, up to skip[node].
type trie struct {
	label []byte   // byte that leads to the node
	depth []uint16 // length of the text of the node, from 1
	skip  []int32
	first []int32 // ids[first[node]:first[node+1]] are the tokens whose text is that of the node
	ids   []int32
}

// sortByText orders ids by the texts of the tokens.
func sortByText(tokens [][]byte, ids []int32) {
	slices.SortFunc(ids, func(a, b int32) int {
		return cmp.Or(bytes.Compare(tokens[a], tokens[b]), cmp.Compare(a, b))
	})
}

// newTrie makes the trie of some tokens of a vocabulary, which are in the order of their texts.
func newTrie(tokens [][]byte, ids []int32) *trie {
	t := &trie{}
	var path []int32 // nodes of the text of the previous token
	var previous []byte
	for _, id := range ids {
		text := tokens[id]
		shared := commonPrefix(previous, text)
		t.close(path[shared:])
		path = path[:shared]
		for i := shared; i < len(text); i++ {
			path = append(path, t.add(text[i], i+1))
		}
		t.ids = append(t.ids, id)
		previous = text
	}
	t.close(path)
	t.first = append(t.first, int32(len(t.ids)))
	return t
}

// add makes a node after all others.
func (t *trie) add(label byte, depth int) int32 {
	t.label = append(t.label, label)
	t.depth = append(t.depth, uint16(depth))
	t.skip = append(t.skip, 0)
	t.first = append(t.first, int32(len(t.ids)))
	return int32(len(t.label) - 1)
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

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
