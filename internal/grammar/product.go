package grammar

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
			edges := p.edges(p.pairs[at])
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

// edges returns the overlaps of the edges of a pair.
func (p *product) edges(pair [2]int32) []byteEdge {
	var out []byteEdge
	left, right := p.a.states[pair[0]].bytes, p.b.states[pair[1]].bytes
	for len(left) > 0 && len(right) > 0 {
		p.budget.spend(1)
		l, r := left[0], right[0]
		if lo, hi := max(l.lo, r.lo), min(l.hi, r.hi); lo <= hi {
			out = append(out, byteEdge{lo, hi, p.state([2]int32{l.to, r.to})})
		}
		if l.hi <= r.hi {
			left = left[1:]
		}
		if r.hi <= l.hi {
			right = right[1:]
		}
	}
	return out
}
