package grammar

// byteEdge is followed by one byte in [lo, hi].
type byteEdge struct {
	lo, hi byte
	to     int32
}

// callEdge is followed by a text of a rule.
type callEdge struct {
	rule int32
	to   int32
}

// tokenEdge is followed by one token as a whole.
type tokenEdge struct {
	id int32
	to int32
}

// nfaState is a state of a nondeterministic automaton.
type nfaState struct {
	empty  []int32 // followed without input
	begin  []int32 // followed without input, before the first byte only
	end    []int32 // followed without input, after the last byte only
	bytes  []byteEdge
	calls  []callEdge
	tokens []tokenEdge
}

// nfa is a nondeterministic automaton under construction.
type nfa struct {
	states []nfaState
	budget *budget
}

// fragment adds an automaton to n that begins at the state from and returns the state where it ends. Nothing is added
// to the returned state but by the caller, and a fragment adds no edge into from but from states that it made.
type fragment func(n *nfa, from int32) int32

// add makes a state.
func (n *nfa) add() int32 {
	n.budget.addState()
	n.states = append(n.states, nfaState{})
	return int32(len(n.states) - 1)
}

func (n *nfa) addEmpty(from, to int32) {
	n.states[from].empty = append(n.states[from].empty, to)
}

func (n *nfa) addBytes(from int32, lo, hi byte, to int32) {
	n.states[from].bytes = append(n.states[from].bytes, byteEdge{lo, hi, to})
}

// nothing is the empty text.
func nothing(_ *nfa, from int32) int32 { return from }

// never is the fragment without any text.
func never(n *nfa, _ int32) int32 { return n.add() }

// literal is one text.
func literal(text string) fragment {
	return func(n *nfa, from int32) int32 {
		for i := range len(text) {
			to := n.add()
			n.addBytes(from, text[i], text[i], to)
			from = to
		}
		return from
	}
}

// byteSet is one byte in one of the ranges.
func byteSet(ranges ...[2]byte) fragment {
	return func(n *nfa, from int32) int32 {
		to := n.add()
		for _, r := range ranges {
			n.addBytes(from, r[0], r[1], to)
		}
		return to
	}
}

// call is a text of a rule.
func call(rule int32) fragment {
	return func(n *nfa, from int32) int32 {
		to := n.add()
		n.states[from].calls = append(n.states[from].calls, callEdge{rule, to})
		return to
	}
}

// token is one token as a whole.
func token(id int32) fragment {
	return func(n *nfa, from int32) int32 {
		to := n.add()
		n.states[from].tokens = append(n.states[from].tokens, tokenEdge{id, to})
		return to
	}
}

// sequence is one fragment after the other.
func sequence(parts ...fragment) fragment {
	return func(n *nfa, from int32) int32 {
		for _, part := range parts {
			from = part(n, from)
		}
		return from
	}
}

// anyOf is one of the fragments. Each begins at a state of its own, so that a loop in one cannot lead into another.
func anyOf(parts ...fragment) fragment {
	return func(n *nfa, from int32) int32 {
		to := n.add()
		for _, part := range parts {
			start := n.add()
			n.addEmpty(from, start)
			n.addEmpty(part(n, start), to)
		}
		return to
	}
}

// optional is the fragment or nothing.
func optional(part fragment) fragment { return repeat(part, 0, 1) }

// repeat is the fragment low to high times; high -1 is without bound.
func repeat(part fragment, low, high int) fragment {
	return func(n *nfa, from int32) int32 {
		n.budget.checkRepeat(max(low, high), "a repetition of")
		for range low {
			from = part(n, from)
		}
		if high < 0 {
			return star(n, from, part)
		}
		to := n.add()
		n.addEmpty(from, to)
		for range high - low {
			next := n.add()
			n.addEmpty(from, next)
			from = part(n, next)
			n.addEmpty(from, to)
		}
		return to
	}
}

// star is the fragment any number of times.
func star(n *nfa, from int32, part fragment) int32 {
	loop, to := n.add(), n.add()
	n.addEmpty(from, loop)
	n.addEmpty(loop, to)
	n.addEmpty(part(n, loop), loop)
	return to
}
