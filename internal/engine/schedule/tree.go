package schedule

import (
	"container/heap"
	"fmt"
	"slices"
)

// keptAdapters is the number of adapters whose blocks stay cached while none of their sequences runs. Each adapter
// keeps its weights on the device.
const keptAdapters = 4

// node is a block of the cache and its tokens. Its ancestors have the tokens before them.
type node struct {
	parent   *node   // nil for a root, which has no block
	root     *node   // itself for a root
	tokens   []int32 // those that are computed
	block    int32
	children map[int32][]*node // by their first token
	refs     int               // sequences that have it; of a root the sequences of the adapter
	used     int               // round of the last use
	number   int               // in order of creation
	at       int               // place among the leaves that may be evicted; -1 for none
	listed   bool              // it is a child of its parent
	adapter  any               // of a root
}

// tree has the blocks of all sequences, and those of earlier ones. Those of each adapter hang on a root of their own.
type tree struct {
	each   int // tokens of a block
	blocks *blocks
	roots  map[any]*node
	leaves leaves // nodes without references and children
	idle   int    // nodes without references
	made   int
	stats  *Stats
}

func newTree(n, each int, stats *Stats) *tree {
	return &tree{each: each, blocks: newBlocks(n), roots: map[any]*node{}, stats: stats}
}

// root returns the root of an adapter.
func (t *tree) root(adapter any) *node {
	if r := t.roots[adapter]; r != nil {
		return r
	}
	t.made++
	r := &node{adapter: adapter, children: map[int32][]*node{}, at: -1, number: t.made}
	r.root = r
	t.roots[adapter] = r
	return r
}

// match is what the tree has of a list of tokens.
type match struct {
	whole  []*node // whole blocks, from the root on
	part   *node   // a block of which the first tokens follow; nil for none
	common int     // so many
}

// tokens is the length of a match.
func (m match) tokens(each int) int { return len(m.whole)*each + m.common }

// find returns the longest match of tokens.
func (t *tree) find(root *node, tokens []int32) (m match) {
	for at := root; len(tokens) > 0; {
		best, n := at.longest(tokens)
		if n < t.each {
			m.part, m.common = best, n
			break
		}
		m.whole = append(m.whole, best)
		at, tokens = best, tokens[t.each:]
	}
	return m
}

// longest returns the child that has most of the first tokens. Of equals, it prefers one that can be continued.
func (n *node) longest(tokens []int32) (best *node, common int) {
	for _, c := range n.children[tokens[0]] {
		k := CommonPrefix(c.tokens, tokens)
		if k > common || k == common && k == len(c.tokens) && c.refs == 0 && best.refs > 0 {
			best, common = c, k
		}
	}
	return best, common
}

// CommonPrefix returns the length of the longest common prefix.
func CommonPrefix(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// add returns a new node, with a reference, behind another one; nil if all blocks are in use. Its block follows that of
// the node where it can. many says that others are added after it.
func (t *tree) add(parent *node, many bool) *node {
	block, ok := t.blocks.take(parent.block, many)
	if !ok {
		if len(t.leaves) == 0 {
			return nil
		}
		t.stats.Evicted++
		t.remove(t.leaves[0]) // that was not used for the longest time
		block, _ = t.blocks.take(parent.block, many)
	}
	t.made++
	return &node{parent: parent, root: parent.root, block: block, refs: 1, number: t.made, at: -1}
}

// fill sets the computed tokens of a node. From the first one on others find it.
func (t *tree) fill(n *node, tokens []int32) {
	n.tokens = slices.Clip(tokens)
	if n.listed || len(tokens) == 0 {
		return
	}
	p := n.parent
	if p.children == nil {
		p.children = map[int32][]*node{}
	}
	p.children[tokens[0]] = append(p.children[tokens[0]], n)
	n.listed = true
	t.settle(p)
}

// hold adds a reference.
func (t *tree) hold(n *node) {
	if n.refs++; n.refs == 1 && n.parent != nil {
		t.idle--
		t.settle(n)
	}
}

// release takes a reference away. A block without tokens, which nobody could find, is free then.
func (t *tree) release(n *node, round int) {
	n.used = max(n.used, round)
	if n.refs--; n.refs > 0 || n.parent == nil {
		return
	}
	if !n.listed {
		t.blocks.give(n.block)
		return
	}
	t.idle++
	t.settle(n)
}

// settle puts a node among the leaves that may be evicted, or takes it from there.
func (t *tree) settle(n *node) {
	leaf := n.parent != nil && n.refs == 0 && len(n.children) == 0
	switch {
	case leaf && n.at < 0:
		heap.Push(&t.leaves, n)
	case !leaf && n.at >= 0:
		heap.Remove(&t.leaves, n.at)
	}
}

// remove frees the block of a node without references and children.
func (t *tree) remove(n *node) {
	heap.Remove(&t.leaves, n.at)
	p, first := n.parent, n.tokens[0]
	list := slices.DeleteFunc(p.children[first], func(c *node) bool { return c == n })
	if p.children[first] = list; len(list) == 0 {
		delete(p.children, first)
	}
	n.listed = false
	t.blocks.give(n.block)
	t.idle--
	if p.parent != nil {
		t.settle(p)
	} else {
		t.forget(p)
	}
}

// forget removes a root that nobody needs, so that the weights of its adapter are released.
func (t *tree) forget(root *node) {
	if root.refs == 0 && len(root.children) == 0 {
		delete(t.roots, root.adapter)
	}
}

// removeBelow removes everything below a node that nobody refers to, and returns the blocks.
func (t *tree) removeBelow(n *node) (removed []int32) {
	for _, list := range n.children {
		for _, c := range slices.Clone(list) {
			removed = append(append(removed, t.removeBelow(c)...), c.block)
			t.remove(c)
		}
	}
	return removed
}

// leaves is a heap of nodes that may be evicted, the least recently used one first.
type leaves []*node

func (l leaves) Len() int { return len(l) }

func (l leaves) Less(i, j int) bool {
	if l[i].used != l[j].used {
		return l[i].used < l[j].used
	}
	return l[i].number < l[j].number
}

func (l leaves) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].at, l[j].at = i, j
}

func (l *leaves) Push(x any) {
	n := x.(*node)
	n.at = len(*l)
	*l = append(*l, n)
}

func (l *leaves) Pop() any {
	last := len(*l) - 1
	n := (*l)[last]
	(*l)[last], *l = nil, (*l)[:last]
	n.at = -1
	return n
}

// blocks are the numbers of the blocks of a cache. Number 0 belongs to nobody.
//
// A device reads blocks that follow one another as one. So a sequence gets those behind its last one where it can, and
// new ones begin where there is most room.
type blocks struct {
	taken []bool
	free  int
}

func newBlocks(n int) *blocks {
	b := &blocks{taken: make([]bool, n), free: n - 1}
	b.taken[0] = true
	return b
}

// take returns a free block, the one behind a block if it is free. It reports false if there is none. many says that
// others are taken after it.
func (b *blocks) take(behind int32, many bool) (block int32, ok bool) {
	if b.free == 0 {
		return 0, false
	}
	at := int(behind) + 1
	if at >= len(b.taken) || b.taken[at] {
		from, n := b.longest()
		at = from
		if !many && n >= 8 { // those around it have room to grow
			at = from + n/2
		}
	}
	b.taken[at] = true
	b.free--
	return int32(at), true
}

// longest returns where most free blocks follow one another, and how many.
func (b *blocks) longest() (from, n int) {
	for at := 1; at < len(b.taken); at++ {
		begin := at
		for at < len(b.taken) && !b.taken[at] {
			at++
		}
		if at-begin > n {
			from, n = begin, at-begin
		}
	}
	return from, n
}

// give makes a block free.
func (b *blocks) give(block int32) {
	if block == 0 || !b.taken[block] {
		panic(fmt.Sprintf("schedule: block %d is free already", block))
	}
	b.taken[block] = false
	b.free++
}
