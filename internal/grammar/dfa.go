package grammar

import (
	"encoding/binary"
	"maps"
	"slices"
)

// dfaState is a state of an automaton with at most one successor for each byte, rule and token.
type dfaState struct {
	final  bool
	bytes  []byteEdge // in order, without overlap
	calls  []callEdge
	tokens []tokenEdge
}

// dfa is a deterministic automaton; it begins at state 0.
type dfa struct {
	states []dfaState
}

// subsets builds a dfa by the subset construction.
type subsets struct {
	nfa    *nfa
	final  int32
	ids    map[string]int32
	sets   [][]int32 // NFA states of each state of the result
	result dfa
	seen   []int32 // the last closure that visited an NFA state
	round  int32
}

// build makes the NFA of a fragment deterministic.
func build(f fragment, b *budget) *dfa {
	n := &nfa{budget: b}
	start := n.add()
	s := &subsets{nfa: n, final: f(n, start), ids: map[string]int32{}}
	s.seen = make([]int32, len(n.states))
	s.state(s.closure([]int32{start}, true, false))
	for at := int32(0); int(at) < len(s.sets); at++ {
		var edges []byteEdge
		calls, tokens := map[int32][]int32{}, map[int32][]int32{} // targets
		for _, state := range s.sets[at] {
			of := &n.states[state]
			edges = append(edges, of.bytes...)
			for _, e := range of.calls {
				calls[e.rule] = append(calls[e.rule], e.to)
			}
			for _, e := range of.tokens {
				tokens[e.id] = append(tokens[e.id], e.to)
			}
		}
		out := s.byteEdges(edges) // it may add states
		result := dfaState{final: s.result.states[at].final, bytes: out}
		for _, rule := range slices.Sorted(maps.Keys(calls)) {
			result.calls = append(result.calls, callEdge{rule, s.state(s.closure(calls[rule], false, false))})
		}
		for _, id := range slices.Sorted(maps.Keys(tokens)) {
			result.tokens = append(result.tokens, tokenEdge{id, s.state(s.closure(tokens[id], false, false))})
		}
		s.result.states[at] = result
	}
	return &s.result
}

// closure returns what the set reaches without input, in order.
func (s *subsets) closure(set []int32, atBegin, atEnd bool) []int32 {
	if len(set) == 1 {
		if state := &s.nfa.states[set[0]]; len(state.empty)+len(state.begin)+len(state.end) == 0 {
			return set
		}
	}
	s.round++
	reached := make([]int32, 0, 2*len(set))
	visit := func(states []int32) {
		for _, state := range states {
			if s.seen[state] != s.round {
				s.seen[state] = s.round
				reached = append(reached, state)
			}
		}
	}
	visit(set)
	for i := 0; i < len(reached); i++ {
		state := &s.nfa.states[reached[i]]
		visit(state.empty)
		if atBegin {
			visit(state.begin)
		}
		if atEnd {
			visit(state.end)
		}
	}
	s.nfa.budget.spend(len(reached))
	slices.Sort(reached)
	return reached
}

// state returns the state of a closed set, which it makes if needed.
func (s *subsets) state(set []int32) int32 {
	key := make([]byte, 0, 4*len(set))
	for _, state := range set {
		key = binary.LittleEndian.AppendUint32(key, uint32(state))
	}
	if id, ok := s.ids[string(key)]; ok {
		return id
	}
	s.nfa.budget.addState()
	id := int32(len(s.sets))
	s.ids[string(key)] = id
	s.sets = append(s.sets, set)
	// The first set is also closed over the assertions of the beginning, which an empty text may still follow.
	ended := s.closure(set, id == 0, true)
	s.result.states = append(s.result.states, dfaState{final: slices.Contains(ended, s.final)})
	return id
}

// byteEdges splits overlapping ranges into disjoint ones, each with the state of all its targets.
func (s *subsets) byteEdges(edges []byteEdge) []byteEdge {
	if len(edges) == 1 {
		e := edges[0]
		return []byteEdge{{e.lo, e.hi, s.state(s.closure([]int32{e.to}, false, false))}}
	}
	var bounds [257]bool
	for _, e := range edges {
		bounds[e.lo], bounds[int(e.hi)+1] = true, true
	}
	var out []byteEdge
	for lo := 0; lo < 256; {
		hi := lo
		for hi < 255 && !bounds[hi+1] {
			hi++
		}
		var to []int32 // the targets on the range from lo to hi, on which they do not change
		s.nfa.budget.spend(len(edges))
		for _, e := range edges {
			if int(e.lo) <= lo && hi <= int(e.hi) {
				to = append(to, e.to)
			}
		}
		if len(to) > 0 {
			target := s.state(s.closure(to, false, false))
			if last := len(out) - 1; last >= 0 && out[last].to == target && int(out[last].hi)+1 == lo {
				out[last].hi = byte(hi)
			} else {
				out = append(out, byteEdge{byte(lo), byte(hi), target})
			}
		}
		lo = hi + 1
	}
	return out
}

// followByte returns the target of a byte among ordered edges, or -1.
func followByte(edges []byteEdge, b byte) int32 {
	at, found := slices.BinarySearchFunc(edges, b, func(e byteEdge, b byte) int {
		switch {
		case e.hi < b:
			return -1
		case e.lo > b:
			return 1
		}
		return 0
	})
	if !found {
		return -1
	}
	return edges[at].to
}

// fragment copies the automaton into a larger one.
func (d *dfa) fragment(n *nfa, from int32) int32 {
	to := n.add()
	first := int32(len(n.states))
	for range d.states {
		n.add()
	}
	for i, state := range d.states {
		at := first + int32(i)
		for _, e := range state.bytes {
			n.addBytes(at, e.lo, e.hi, first+e.to)
		}
		if state.final {
			n.addEmpty(at, to)
		}
	}
	n.addEmpty(from, first)
	return to
}

// product builds the automaton of the texts that two automata accept.
type product struct {
	a, b   *dfa
	ids    map[[2]int32]int32
	pairs  [][2]int32
	result dfa
	budget *budget
}

// intersect returns the texts that all automata accept. They have neither calls nor tokens.
func intersect(b *budget, parts ...*dfa) *dfa {
	result := parts[0]
	for _, part := range parts[1:] {
		p := &product{a: result, b: part, ids: map[[2]int32]int32{}, budget: b}
		p.state([2]int32{0, 0})
		for at := 0; at < len(p.pairs); at++ {
			var edges []byteEdge // the overlaps of the edges of the pair
			left, right := p.a.states[p.pairs[at][0]].bytes, p.b.states[p.pairs[at][1]].bytes
			for len(left) > 0 && len(right) > 0 {
				b.spend(1)
				l, r := left[0], right[0]
				if lo, hi := max(l.lo, r.lo), min(l.hi, r.hi); lo <= hi {
					edges = append(edges, byteEdge{lo, hi, p.state([2]int32{l.to, r.to})})
				}
				if l.hi <= r.hi {
					left = left[1:]
				}
				if r.hi <= l.hi {
					right = right[1:]
				}
			}
			p.result.states[at].bytes = edges
		}
		result = &p.result
	}
	return result
}

// state returns the state of a pair, which it makes if needed.
func (p *product) state(pair [2]int32) int32 {
	if id, ok := p.ids[pair]; ok {
		return id
	}
	p.budget.addState()
	id := int32(len(p.pairs))
	p.ids[pair] = id
	p.pairs = append(p.pairs, pair)
	final := p.a.states[pair[0]].final && p.b.states[pair[1]].final
	p.result.states = append(p.result.states, dfaState{final: final})
	return id
}

// stopFree is the automaton of Aho and Corasick (1975) without the edges that complete a stop: its states are the
// prefixes of stops, the longest that ends the text so far.
func stopFree(stops []string, b *budget) *dfa {
	// The proper prefixes of stops, the empty one first, and the state of each; -1 stands for a stop.
	prefixes, ids := []string{""}, map[string]int32{"": 0}
	for _, stop := range stops {
		for n := 1; n < len(stop); n++ {
			if _, ok := ids[stop[:n]]; !ok {
				ids[stop[:n]] = int32(len(prefixes))
				prefixes = append(prefixes, stop[:n])
			}
		}
	}
	for _, stop := range stops {
		ids[stop] = -1
	}
	result := &dfa{}
	for _, prefix := range prefixes {
		b.addState()
		state := dfaState{final: true}
		for c := range 256 {
			b.spend(len(prefix) + 1)
			if to, ok := longestPrefix(prefix+string([]byte{byte(c)}), ids); ok {
				state.bytes = append(state.bytes, byteEdge{byte(c), byte(c), to})
			}
		}
		result.states = append(result.states, state)
	}
	return result
}

// longestPrefix returns the state of the longest suffix that is a prefix of a stop, unless a suffix is a stop.
func longestPrefix(text string, ids map[string]int32) (int32, bool) {
	state := int32(-1)
	for n := 0; n <= len(text); n++ {
		switch id, ok := ids[text[n:]]; {
		case ok && id < 0:
			return 0, false
		case ok && state < 0:
			state = id
		}
	}
	return state, true
}
