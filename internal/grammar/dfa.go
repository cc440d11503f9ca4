package grammar

import (
	"encoding/binary"
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
	return determinize(n, start, f(n, start))
}

// determinize returns the automaton of the texts that lead from start to final.
func determinize(n *nfa, start, final int32) *dfa {
	s := &subsets{nfa: n, final: final, ids: map[string]int32{}, seen: make([]int32, len(n.states))}
	s.state(s.closure([]int32{start}, true, false))
	for at := int32(0); int(at) < len(s.sets); at++ {
		s.expand(at)
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

// expand fills the edges of a state.
func (s *subsets) expand(at int32) {
	var edges []byteEdge
	var calls []callEdge
	var tokens []tokenEdge
	for _, state := range s.sets[at] {
		edges = append(edges, s.nfa.states[state].bytes...)
		calls = append(calls, s.nfa.states[state].calls...)
		tokens = append(tokens, s.nfa.states[state].tokens...)
	}
	out := s.byteEdges(edges)
	result := dfaState{final: s.result.states[at].final, bytes: out}
	for rule, to := range groupTargets(calls, func(e callEdge) (int32, int32) { return e.rule, e.to }) {
		result.calls = append(result.calls, callEdge{rule, s.state(s.closure(to, false, false))})
	}
	for id, to := range groupTargets(tokens, func(e tokenEdge) (int32, int32) { return e.id, e.to }) {
		result.tokens = append(result.tokens, tokenEdge{id, s.state(s.closure(to, false, false))})
	}
	s.result.states[at] = result
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
		out = s.appendRange(out, edges, byte(lo), byte(hi))
		lo = hi + 1
	}
	return out
}

// appendRange appends the edge of one range on which the targets do not change.
func (s *subsets) appendRange(out, edges []byteEdge, lo, hi byte) []byteEdge {
	var to []int32
	s.nfa.budget.spend(len(edges))
	for _, e := range edges {
		if e.lo <= lo && hi <= e.hi {
			to = append(to, e.to)
		}
	}
	if len(to) == 0 {
		return out
	}
	target := s.state(s.closure(to, false, false))
	if last := len(out) - 1; last >= 0 && out[last].to == target && int(out[last].hi)+1 == int(lo) {
		out[last].hi = hi
		return out
	}
	return append(out, byteEdge{lo, hi, target})
}

// groupTargets returns the targets of each label, in the order of the labels.
func groupTargets[E any](edges []E, parts func(E) (label, to int32)) func(func(int32, []int32) bool) {
	targets := map[int32][]int32{}
	var labels []int32
	for _, e := range edges {
		label, to := parts(e)
		if targets[label] == nil {
			labels = append(labels, label)
		}
		targets[label] = append(targets[label], to)
	}
	slices.Sort(labels)
	return func(yield func(int32, []int32) bool) {
		for _, label := range labels {
			if !yield(label, targets[label]) {
				return
			}
		}
	}
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
