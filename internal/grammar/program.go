package grammar

import (
	"errors"
	"slices"
)

// errNothing is returned for grammars without any text.
var errNothing = errors.New("grammar: no text is allowed: its constraints contradict one another, " +
	"or it needs bytes for which the vocabulary has no token")

// program is a pushdown automaton over bytes and tokens: deterministic automata that call one another. From each of its
// states some text leads to an end.
type program struct {
	states []dfaState // of all rules
	start  []int32    // first state of each rule
	rank   []int32    // order of the rules in which a caller comes before what it calls without consuming input first
	class  [256]uint8 // bytes of a class are on the same edges everywhere
	bytes  []byte     // one byte of each class
}

// link joins the automata of rules. allowed says which bytes can be written. The error is errNothing.
func link(rules []*dfa, root int32, allowed *[256]bool) (*program, error) {
	p := &program{}
	for _, rule := range rules {
		p.append(rule, allowed)
	}
	if !p.trim()[p.start[root]] {
		return nil, errNothing
	}
	p.order(root)
	var bounds [257]bool
	for _, s := range p.states {
		for _, e := range s.bytes {
			bounds[e.lo], bounds[int(e.hi)+1] = true, true
		}
	}
	for b := range 256 {
		if b == 0 || bounds[b] {
			p.bytes = append(p.bytes, byte(b))
		}
		p.class[b] = uint8(len(p.bytes) - 1)
	}
	return p, nil
}

// append adds the states of a rule, without the edges of bytes that cannot be written.
func (p *program) append(rule *dfa, allowed *[256]bool) {
	first := int32(len(p.states))
	p.start = append(p.start, first)
	for _, state := range rule.states {
		moved := dfaState{final: state.final}
		for _, e := range state.bytes {
			for b := int(e.lo); b <= int(e.hi); b++ {
				if !allowed[b] {
					continue
				}
				lo := b
				for b < int(e.hi) && allowed[b+1] {
					b++
				}
				moved.bytes = append(moved.bytes, byteEdge{byte(lo), byte(b), e.to + first})
			}
		}
		for _, e := range state.calls {
			moved.calls = append(moved.calls, callEdge{e.rule, e.to + first})
		}
		for _, e := range state.tokens {
			moved.tokens = append(moved.tokens, tokenEdge{e.id, e.to + first})
		}
		p.states = append(p.states, moved)
	}
}

// trim removes the edges after which no end can be reached, and returns which states can reach one.
func (p *program) trim() []bool {
	// For each state where its edges come from, with the start of the called rule or -1.
	into := make([][][2]int32, len(p.states))
	for i, s := range p.states {
		from := int32(i)
		for _, e := range s.bytes {
			into[e.to] = append(into[e.to], [2]int32{from, -1})
		}
		for _, e := range s.tokens {
			into[e.to] = append(into[e.to], [2]int32{from, -1})
		}
		for _, e := range s.calls {
			into[e.to] = append(into[e.to], [2]int32{from, p.start[e.rule]})
		}
	}
	// The ends are useful, and so is what leads to a useful state; an edge of a call once the called rule is useful too.
	useful := make([]bool, len(p.states))
	waiting := map[int32][][2]int32{} // calls whose target is useful, by the start of the called rule
	var todo []int32
	mark := func(state int32) {
		if !useful[state] {
			useful[state] = true
			todo = append(todo, state)
		}
	}
	for i, s := range p.states {
		if s.final {
			mark(int32(i))
		}
	}
	for len(todo) > 0 {
		state := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, call := range waiting[state] {
			mark(call[0])
		}
		for _, edge := range into[state] {
			if callee := edge[1]; callee >= 0 && !useful[callee] {
				waiting[callee] = append(waiting[callee], edge)
				continue
			}
			mark(edge[0])
		}
	}
	for i := range p.states {
		s := &p.states[i]
		s.bytes = slices.DeleteFunc(s.bytes, func(e byteEdge) bool { return !useful[e.to] })
		s.calls = slices.DeleteFunc(s.calls, func(e callEdge) bool { return !useful[e.to] || !useful[p.start[e.rule]] })
		s.tokens = slices.DeleteFunc(s.tokens, func(e tokenEdge) bool { return !useful[e.to] })
	}
	return useful
}

// order ranks the rules, and fails for one that would call itself without consuming input first.
func (p *program) order(root int32) {
	const visiting = -2
	p.rank = make([]int32, len(p.start))
	next := int32(len(p.start))
	var visit func(rule int32)
	visit = func(rule int32) {
		p.rank[rule] = visiting
		for _, e := range p.states[p.start[rule]].calls {
			switch p.rank[e.rule] {
			case visiting:
				fail(errors.New("grammar: a schema refers to itself without an object or array in between"))
			case 0:
				visit(e.rule)
			}
		}
		p.rank[rule] = next
		next--
	}
	for rule := range p.start {
		if p.rank[rule] == 0 {
			visit(int32(rule))
		}
		if start := p.start[rule]; int32(rule) != root && p.states[start].final {
			fail(errors.New("grammar: a rule allows the empty text")) // no constructor of this package makes one
		}
	}
}
