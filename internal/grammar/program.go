package grammar

import (
	"errors"
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

// link joins the automata of rules. allowed says which bytes can be written.
func link(rules []*dfa, root int32, allowed *[256]bool) (*program, error) {
	p := &program{}
	for _, rule := range rules {
		p.append(rule, allowed)
	}
	if !p.trim()[p.start[root]] {
		return nil, errNothing
	}
	if err := p.order(root); err != nil {
		return nil, err
	}
	p.classify()
	return p, nil
}

// append adds the states of a rule, without the edges of bytes that cannot be written.
func (p *program) append(rule *dfa, allowed *[256]bool) {
	first := int32(len(p.states))
	p.start = append(p.start, first)
	for _, state := range rule.states {
		moved := dfaState{final: state.final}
		for _, e := range state.bytes {
			moved.bytes = appendAllowed(moved.bytes, byteEdge{e.lo, e.hi, e.to + first}, allowed)
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

// appendAllowed appends the parts of an edge whose bytes are allowed.
func appendAllowed(edges []byteEdge, e byteEdge, allowed *[256]bool) []byteEdge {
	for b := int(e.lo); b <= int(e.hi); b++ {
		if !allowed[b] {
			continue
		}
		lo := b
		for b < int(e.hi) && allowed[b+1] {
			b++
		}
		edges = append(edges, byteEdge{byte(lo), byte(b), e.to})
	}
	return edges
}

// trim removes the edges after which no end can be reached, and returns which states can reach one.
func (p *program) trim() []bool {
	useful := p.useful()
	for i := range p.states {
		s := &p.states[i]
		s.bytes = keep(s.bytes, func(e byteEdge) bool { return useful[e.to] })
		s.calls = keep(s.calls, func(e callEdge) bool { return useful[e.to] && useful[p.start[e.rule]] })
		s.tokens = keep(s.tokens, func(e tokenEdge) bool { return useful[e.to] })
	}
	return useful
}

// keep returns the edges that pass, in the same array.
func keep[E any](edges []E, pass func(E) bool) []E {
	kept := edges[:0]
	for _, e := range edges {
		if pass(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

// useful returns the states from which the end of their rule can be reached, by going backwards from the ends. An edge
// of a call counts once the called rule is useful.
func (p *program) useful() []bool {
	useful := make([]bool, len(p.states))
	into := p.reversed()
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
	return useful
}

// reversed returns for each state where its edges come from, with the start of the called rule or -1.
func (p *program) reversed() [][][2]int32 {
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
	return into
}

// order ranks the rules, and finds those that would call themselves without consuming input first.
func (p *program) order(root int32) error {
	const visiting = -2
	p.rank = make([]int32, len(p.start))
	next := int32(len(p.start))
	var visit func(rule int32) error
	visit = func(rule int32) error {
		p.rank[rule] = visiting
		for _, e := range p.states[p.start[rule]].calls {
			switch p.rank[e.rule] {
			case visiting:
				return errors.New("grammar: a schema refers to itself without an object or array in between")
			case 0:
				if err := visit(e.rule); err != nil {
					return err
				}
			}
		}
		p.rank[rule] = next
		next--
		return nil
	}
	for rule := range p.start {
		if p.rank[rule] == 0 {
			if err := visit(int32(rule)); err != nil {
				return err
			}
		}
		if start := p.start[rule]; int32(rule) != root && p.states[start].final {
			return errors.New("grammar: a rule allows the empty text") // no constructor of this package makes one
		}
	}
	return nil
}

// classify sorts bytes into classes.
func (p *program) classify() {
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
}
