package grammar

import "math/bits"

// The mask of a configuration is the union of those of its items. What an item allows is mostly independent of the
// frame it is in: tokens that stay within the rule and what it calls, or end exactly with it. That part is computed
// once for each state. The others, which go on after the end of the rule, are few; they are looked up in what comes
// after the frame. XGrammar (Dong et al. 2024, https://arxiv.org/abs/2411.15100, section 3.1) calls them
// context-independent and context-dependent tokens.

// mask is a set of token ids.
type mask struct {
	ids  []int32  // the ids, in no order, if they are few
	bits []uint32 // one bit for each id otherwise
}

// static is what a state allows whatever comes after its frame.
type static struct {
	mask
	trie    *trie   // the trie of escapes
	escapes []int32 // nodes at which the frame may end, with tokens below them that the state alone does not allow
}

func setBit(bits []uint32, id int32) { bits[id>>5] |= 1 << (id & 31) }

func hasBit(bits []uint32, id int32) bool { return bits[id>>5]&(1<<(id&31)) != 0 }

// addTo adds the ids to a bitset.
func (s *mask) addTo(dst []uint32) {
	for i, word := range s.bits {
		dst[i] |= word
	}
	for _, id := range s.ids {
		setBit(dst, id)
	}
}

// single returns the id if the set has one.
func (s *mask) single() (int32, bool) {
	if s.bits != nil || len(s.ids) != 1 {
		return 0, false
	}
	return s.ids[0], true
}

// compress returns the set of a bitset, which it copies.
func compress(set []uint32) mask {
	count := 0
	for _, word := range set {
		count += bits.OnesCount32(word)
	}
	if count > len(set) {
		return mask{bits: append([]uint32(nil), set...)}
	}
	ids := make([]int32, 0, count)
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			ids = append(ids, int32(32*i+bits.TrailingZeros32(word)))
		}
	}
	return mask{ids: ids}
}

// bytes returns about how much memory the set takes.
func (s *mask) bytes() int { return 4 * (len(s.bits) + len(s.ids)) }

// maskOf returns the mask of a configuration.
func (c *Compiled) maskOf(at *config) *mask {
	if at.mask != nil {
		return at.mask
	}
	dst := make([]uint32, c.vocabulary.MaskWords())
	for _, it := range at.items {
		s := c.staticOf(it.state)
		s.addTo(dst)
		if len(s.escapes) == 0 {
			continue
		}
		after := c.machine.after(it.frame)
		for _, node := range s.escapes {
			c.walk(s.trie, node+1, s.trie.skip[node], after, dst)
		}
	}
	if at.end {
		for _, id := range c.vocabulary.end {
			setBit(dst, id)
		}
	}
	m := compress(dst)
	at.mask = &m
	c.kept += m.bytes()
	return at.mask
}

// staticOf returns what a state allows whatever comes after its frame.
func (c *Compiled) staticOf(state int32) *static {
	if s := c.statics[state]; s != nil {
		return s
	}
	dst := make([]uint32, c.vocabulary.MaskWords())
	for _, e := range c.machine.program.states[state].tokens {
		setBit(dst, e.id)
	}
	s := &static{trie: c.vocabulary.all}
	begin := c.machine.within(state)
	for i, slice := range c.vocabulary.slices {
		if c.machine.allows(begin, i, slice.alphabet, 0, maxPlain) {
			copyBits(dst, slice.tokens)
			s.trie = slice.rest
			break
		}
	}
	for _, node := range c.walk(s.trie, 0, int32(len(s.trie.label)), begin, dst) {
		if missing(dst, s.trie.below(node)) {
			s.escapes = append(s.escapes, node)
		}
	}
	s.mask = compress(dst)
	c.statics[state] = s
	c.kept += s.bytes() + 4*len(s.escapes)
	return s
}

func copyBits(dst, src []uint32) {
	for i, word := range src {
		dst[i] |= word
	}
}

// missing reports whether a bitset lacks one of the ids.
func missing(set []uint32, ids []int32) bool {
	for _, id := range ids {
		if !hasBit(set, id) {
			return true
		}
	}
	return false
}

// walk adds the tokens of the nodes from lo up to hi, siblings and what is below them, that are allowed after a
// configuration. It returns the nodes with others below them at which an open frame may end.
func (c *Compiled) walk(t *trie, lo, hi int32, begin *config, dst []uint32) []int32 {
	if lo == hi || begin == dead {
		return nil
	}
	base := int(t.depth[lo]) - 1
	path := append(c.path[:0], begin) // configurations before each byte of the text
	var escapes []int32
	for node := lo; node < hi; {
		at := int(t.depth[node]) - base
		next := c.machine.step(path[at-1], t.label[node])
		if next == dead {
			node = t.skip[node]
			continue
		}
		path = append(path[:at], next)
		for _, id := range t.ids[t.first[node]:t.first[node+1]] {
			setBit(dst, id)
		}
		if next.escaped && t.skip[node] > node+1 {
			escapes = append(escapes, node)
		}
		node++
	}
	c.path = path
	return escapes
}
